from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest
from rich.console import Group

from headrace import JobManager, JobSpec, PermanentError, TemporaryError, connect
from headrace.cli import top, top_frame
from headrace.cli.output import Output
from headrace.cli.session import Session
from headrace.cli.settings import Settings
from headrace.cli.top_controls import Controls, Switch
from headrace.cli.top_frame import ErrorFrame, FailureFrame, Frame, QueueFrame, Watch
from headrace.cli.top_view import lines, share
from headrace.clock import ManualClock
from headrace.errors import StoreUnavailable
from headrace.limits import QueueLimits
from headrace.model import State
from tests.cli.shell import Shell

RUDE = "no \x1b[2Jscreen\nleft \x07"


async def _busy(jobs: JobManager, clock: ManualClock) -> None:
    """Two queues: on one 8 of 20 jobs were started, 3 of them completed and 2 failed; one is paused."""
    await jobs.submit_many([JobSpec(type="send", queue="mail") for _ in range(20)])
    await jobs.submit(JobSpec(type="later", queue="night", delay_seconds=3600, tenant="acme"))
    await jobs.set_limits("mail", QueueLimits(concurrency=50))
    await jobs.pause("night")
    clock.advance(3)
    claimed = await jobs.claim("w-1", queues=["mail"], limit=8)
    for job in claimed[:3]:
        await jobs.complete(job.id, job.token)
    await jobs.fail(claimed[3].id, claimed[3].token, TemporaryError(RUDE, retry_after=60))
    await jobs.fail(claimed[4].id, claimed[4].token, PermanentError("gone", code="E1"))
    clock.advance(1)


def _plain(frame: Frame, width: int, height: int | None = None) -> list[str]:
    return [line.plain for line in lines(frame, "memory:", width, height)]


async def test_a_frame_tells_queues_rates_workers_and_failures(store_url: str) -> None:
    clock = ManualClock()
    async with await connect(store_url, clock=clock) as jobs:
        watch = Watch(jobs)
        await watch.begin()
        first = await watch.frame()
        assert (first.rates, first.queues, first.workers, first.failures) == (None, (), (), ())
        await _busy(jobs, clock)
        frame = await watch.frame()
    assert frame.seconds == frame.failed_seconds == 4
    assert not frame.at_least
    assert frame.rates is not None
    rates = frame.rates
    assert (rates.submitted, rates.started) == (21 / 4, 8 / 4)
    assert (rates.completed, rates.failed) == (3 / 4, 2 / 4)
    night, mail = frame.queues
    assert (night.tenant, night.queue, night.delayed, night.paused) == ("acme", "night", 1, True)
    assert (night.limited, night.oldest_ready_seconds) == (False, None)
    assert (mail.ready, mail.delayed, mail.running, mail.blocked) == (12, 1, 3, 0)
    assert (mail.limited, mail.paused, mail.oldest_ready_seconds) == (True, False, 4)
    assert (mail.completed_per_second, mail.failed) == (3 / 4, 2)
    (worker,) = frame.workers
    assert (worker.worker, worker.jobs, worker.queues) == ("w-1", 3, ("mail",))
    last, before = frame.failures
    assert (last.state, last.category, last.code, last.message) == (
        State.FAILED,
        "permanent",
        "E1",
        "gone",
    )
    assert (before.state, before.category, before.queue) == (State.RETRYING, "temporary", "mail")
    assert [(one.failures, one.message) for one in frame.errors] == [
        (1, "gone"),
        (1, before.message),
    ]
    assert (mail.dead, mail.drain_seconds) == (0, None)  # more came in than was started


async def test_equal_errors_are_counted_dead_letters_too_and_when_a_queue_is_empty() -> None:
    clock = ManualClock()
    async with await connect("memory:", clock=clock) as jobs:
        await jobs.submit_many([JobSpec(type="send", queue="mail") for _ in range(30)])
        clock.advance(5)
        watch = Watch(jobs)
        await watch.begin()
        for n, job in enumerate(await jobs.claim("w", limit=10)):
            error = (
                PermanentError(f"no mailbox {n}", code="E1") if n < 8 else PermanentError("full")
            )
            await jobs.fail(job.id, job.token, error)
        await jobs.submit(JobSpec(type="send", queue="mail", id="d", max_attempts=1, priority=0))
        (last,) = await jobs.claim("w", limit=1)
        await jobs.fail(last.id, last.token, "down")
        clock.advance(2)
        frame = await watch.frame()
    (mail,) = frame.queues
    assert (mail.ready, mail.dead) == (20, 1)
    assert mail.drain_seconds == 20 / (11 / 2 - 1 / 2)
    assert [(one.failures, one.message) for one in frame.errors] == [
        (1, "down"),
        (2, "full"),
        (8, "no mailbox <n>"),
    ]
    for width in (80, 120):
        shown = _plain(frame, width)
        (row,) = (line for line in shown if line.startswith("mail "))
        assert row.split()[-3:] == ["4s", "11", "1"]
        assert sum("E1: no mailbox <n>" in line for line in shown) == 1
        assert max(map(len, shown[2:])) <= width


def queue(name: str, **fields: Any) -> QueueFrame:
    given: dict[str, Any] = {
        "tenant": "default",
        "queue": name,
        "paused": False,
        "limited": False,
        "ready": 0,
        "delayed": 0,
        "running": 0,
        "blocked": 0,
        "oldest_ready_seconds": None,
        "completed_per_second": None,
        "failed": 0,
        "dead": 0,
        "drain_seconds": None,
    }
    return QueueFrame(**(given | fields))


def test_the_keys_choose_sort_filter_and_pause_after_a_yes() -> None:
    queues = [queue("bulk", ready=5), queue("mail", dead=7), queue("web", paused=True, failed=1)]
    controls = Controls()

    def press(keys: str) -> list[str]:
        controls.hear(keys)
        return [one.queue for one in controls.arrange(queues)]

    assert press("") == ["bulk", "mail", "web"]
    assert press("s") == ["bulk", "mail", "web"]  # by what is ready
    assert press("sss") == ["web", "bulk", "mail"]  # by what failed
    assert press("s") == ["mail", "bulk", "web"]  # by dead letters
    press("p")
    assert (controls.asking, controls.note) == (None, "choose a queue first, with the arrow keys")
    press("\x1b[B\x1b[B")
    assert controls.selected == ("default", "bulk")
    press("pn")
    assert (controls.asking, controls.take()) == (None, None)
    press("p")
    assert controls.asking == Switch("bulk", pause=True)
    assert controls.take() is None
    press("y")
    assert controls.take() == Switch("bulk", pause=True)
    assert controls.take() is None
    press("jjjj")
    press("py")
    assert controls.take() == Switch("web", pause=False)
    press("k")
    assert controls.selected == ("default", "bulk")
    assert press("/Wq") == []
    assert press("\x7f") == ["web"]
    press("\r")
    assert (controls.typing, controls.filter, controls.quit) == (False, "W", False)
    assert press("\x1b") == ["mail", "bulk", "web"]
    press("q")
    assert controls.quit


def test_the_chosen_queue_is_always_shown_and_the_keys_are() -> None:
    at = ManualClock().now()
    queues = tuple(queue(f"queue-{n:02}", ready=n) for n in range(40))
    frame = Frame(
        at=at,
        seconds=0,
        failed_seconds=0,
        at_least=False,
        rates=None,
        queues=queues,
        workers=(),
        jobs_at_least=False,
        failures=(),
        errors=(),
    )
    controls = Controls()
    for keys in ("j", "s"):
        controls.arrange(queues)
        controls.hear(keys)
        controls.selected = ("default", "queue-00")
        shown = [line.plain for line in lines(frame, "memory:", 80, 24, controls)]
        assert any(line.startswith("queue-00 ") for line in shown)
        assert len(shown) <= 24
        assert shown[-1].startswith("q quit")


async def test_rates_and_failures_are_of_the_last_seconds_only() -> None:
    clock = ManualClock()
    async with await connect("memory:", clock=clock) as jobs:
        watch = Watch(jobs)
        await watch.begin()
        await _busy(jobs, clock)
        await watch.frame()
        clock.advance(9)
        frame = await watch.frame()
        assert frame.rates is not None
        assert (
            frame.rates.submitted == 21 / 13
        )  # the slice that reaches into the window counts whole
        clock.advance(10)
        frame = await watch.frame()
        assert frame.rates is not None
        assert (frame.seconds, frame.rates.submitted) == (10, 0)
        mail = frame.queues[1]
        assert (mail.completed_per_second, mail.failed) == (0, 2)
        for _ in range(6):
            clock.advance(10)
            frame = await watch.frame()
        assert frame.queues[1].failed == 0
        assert len(frame.failures) == 2


async def test_a_log_that_grows_too_fast_is_not_read_in_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(top_frame, "EVENTS_PAGE", 10)
    monkeypatch.setattr(top_frame, "EVENTS_MAX", 30)
    clock = ManualClock()
    async with await connect("memory:", clock=clock) as jobs:
        watch = Watch(jobs)
        await watch.begin()
        await jobs.submit_many([JobSpec(type="a") for _ in range(100)])
        clock.advance(1)
        frame = await watch.frame()
        assert frame.at_least
        assert frame.rates is not None
        assert frame.rates.submitted == 30
        assert "submitted 30.0+/s" in _plain(frame, 80)[1]
        await jobs.submit(JobSpec(type="a"))
        clock.advance(1)
        frame = await watch.frame()
        assert frame.rates is not None
        assert frame.rates.submitted == 31 / 2  # what was left out is not made up for


async def test_failures_from_before_are_shown_once() -> None:
    clock = ManualClock()
    async with await connect("memory:", clock=clock) as jobs:
        await _busy(jobs, clock)
        watch = Watch(jobs)
        await watch.begin()
        frame = await watch.frame()
        assert [one.message for one in frame.failures] == ["gone"]
        assert frame.rates is None


async def test_a_worker_that_is_too_busy_to_ask_is_still_there() -> None:
    clock = ManualClock()
    async with await connect("memory:", clock=clock) as jobs:
        watch = Watch(jobs)
        await watch.begin()
        await watch.frame()
        await jobs.submit_many([JobSpec(type="a", lease_seconds=3600) for _ in range(3)])
        held = await jobs.claim("w-1", limit=3)
        clock.advance(1)
        (worker,) = (await watch.frame()).workers  # kept up by the events
        assert worker.jobs == 3
        clock.advance(120)
        frame = await watch.frame()
        (worker,) = frame.workers
        assert (worker.jobs, worker.seen_at) == (3, None)
        assert "w-1        3  over 1m ago  all" in _plain(frame, 80)
        for job in held:
            await jobs.complete(job.id, job.token)
        assert (await watch.frame()).workers == ()


async def test_slots_taken_are_told_of_each_worker_and_of_all(store_url: str) -> None:
    clock = ManualClock()
    async with await connect(store_url, clock=clock) as jobs:
        watch = Watch(jobs)
        await watch.begin()
        await jobs.announce("gone", slots=1000, busy=1000)
        clock.advance(20)
        await jobs.announce("mail-1-6f2a90", queues=["mail"], slots=50, busy=12)
        await jobs.announce("mail-2-c14be7", queues=["mail"], slots=50, busy=50)
        await jobs.claim("by-hand")
        clock.advance(3)
        frame = await watch.frame()
    assert (frame.busy, frame.slots) == (62, 100), "of those that are there"
    assert {one.worker: (one.busy, one.slots) for one in frame.workers} == {
        "by-hand": (None, None),
        "gone": (1000, 1000),
        "mail-1-6f2a90": (12, 50),
        "mail-2-c14be7": (50, 50),
    }
    for width in (80, 120):
        shown = _plain(frame, width)
        assert "slots 62/100" in shown[0]
        assert max(map(len, shown)) <= width
        assert [" ".join(line.split()) for line in shown[shown.index("no jobs") + 2 :][:5]] == [
            "WORKER JOBS SLOTS SEEN QUEUES",
            "by-hand 0 - 3s ago all",
            "gone 0 1000/1000 23s ago all",
            "mail-1-6f2a90 0 12/50 3s ago mail",
            "mail-2-c14be7 0 50/50 3s ago mail",
        ]


async def test_another_tenant_is_not_seen(store_url: str) -> None:
    clock = ManualClock()
    async with await connect(store_url, clock=clock) as jobs:
        mine = jobs.scoped("acme")
        watch = Watch(mine)
        await watch.begin()
        await _busy(jobs, clock)
        frame = await watch.frame()
    assert [one.queue for one in frame.queues] == ["night"]
    assert frame.rates is not None
    assert frame.rates.submitted == 1 / 4
    assert (frame.workers, frame.failures) == ((), ())


@pytest.mark.parametrize("width", [60, 80, 120, 200])
async def test_nothing_steers_the_terminal_and_nothing_is_wider(width: int) -> None:
    clock = ManualClock()
    async with await connect("memory:", clock=clock) as jobs:
        watch = Watch(jobs)
        await watch.begin()
        await _busy(jobs, clock)
        shown = _plain(await watch.frame(), width)
    assert all(line.isprintable() for line in shown)
    assert any("\\x1b[2Jscreen left" in line for line in shown)
    # The first two lines are cut by the terminal, the tables by themselves.
    assert all(len(line) <= width for line in shown[2:] if "temporary: " not in line)
    assert any(line.startswith("mail ") for line in shown)


def test_what_does_not_fit_is_counted_and_the_busiest_stay() -> None:
    at = ManualClock().now()
    queues = tuple(
        top_frame.QueueFrame(
            tenant="default",
            queue=f"queue-{n:02}",
            paused=False,
            limited=False,
            ready=n,
            delayed=0,
            running=0,
            blocked=0,
            oldest_ready_seconds=None,
            completed_per_second=0.0,
            failed=0,
            dead=0,
            drain_seconds=None,
        )
        for n in range(40)
    )
    failure = FailureFrame(
        at=at,
        tenant="default",
        queue="q",
        type="t",
        job_id="j",
        state=State.DEAD,
        category=None,
        code=None,
        message=None,
    )
    error = ErrorFrame(
        failures=1,
        queue="q",
        type="t",
        category=None,
        code=None,
        message=None,
        latest=failure,
    )
    frame = Frame(
        at=at,
        seconds=0,
        failed_seconds=0,
        at_least=False,
        rates=None,
        queues=queues,
        workers=(),
        jobs_at_least=False,
        failures=(failure,) * 20,
        errors=(error,) * 20,
    )
    for height in (12, 24, 50):
        shown = _plain(frame, 80, height)
        assert len(shown) <= height
        names = [line.split()[0] for line in shown if line.startswith("queue-")]
        assert names == sorted(names)
        assert names[-1] == "queue-39"
        assert f"and {40 - len(names)} more" in shown[3]
    assert len(_plain(frame, 80)) == 2 + 2 + 40 + 2 + 2 + 2 * 20


def test_lines_are_shared_in_turns() -> None:
    assert share(10, [2, 9, 3]) == [2, 5, 3]
    assert share(3, [9, 0, 9]) == [2, 0, 1]
    assert share(-4, [9, 9, 9]) == [0, 0, 0]
    assert share(99, [1, 0, 2]) == [1, 0, 2]


def test_once_prints_one_frame(shell: Shell) -> None:
    assert shell.ok("top", "--once", "--interval", "100ms").out.splitlines()[2:] == [
        "",
        "no jobs",
        "",
        "no workers in the last minute",
        "",
        "no failures",
    ]
    shell.end("dead", queue="mail")
    out = shell.ok("top", "--once", "--interval", "0.1").out
    assert "\x1b" not in out
    assert "the server is busy" in out
    frame = shell.ok("top", "--once", "--interval", "0.1s", "--json").json
    assert set(frame) == set(Frame.__struct_fields__)
    assert frame["seconds"] > 0
    assert frame["rates"] == {"submitted": 0, "started": 0, "completed": 0, "failed": 0}
    assert [one["queue"] for one in frame["queues"]] == ["mail"]
    assert [one["worker"] for one in frame["workers"]] == ["worker-1"]
    assert [one["message"] for one in frame["failures"]] == ["the server is busy"]


def test_an_interval_that_is_too_short_is_refused(shell: Shell) -> None:
    answer = shell("top", "--interval", "0")
    assert answer.code == 2
    assert "100ms at least" in answer.err


def test_a_password_is_not_shown() -> None:
    shown = Settings(url="postgresql://me:secret@db:5432/jobs?password=secret").shown_url
    assert shown == "postgresql://db:5432/jobs"
    assert Settings(url="sqlite:////var/jobs.db").shown_url == "sqlite:////var/jobs.db"


@contextlib.contextmanager
def _running(shell: Shell, *words: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "headrace.cli", "--url", shell.url, "top", *words]
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            process.kill()  # nothing happens if it has ended


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_into_a_pipe_each_interval_is_a_frame_until_a_signal(shell: Shell, number: int) -> None:
    with _running(shell, "--interval", "0.1s", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        seen = b""
        while seen.count(b"headrace top") < 3:
            seen += os.read(process.stdout.fileno(), 4096)
        process.send_signal(number)
        assert process.wait(20) == 0
    assert b"\x1b" not in seen
    assert b"no failures\n\nheadrace top" in seen


def test_json_is_one_object_per_line_and_interval(shell: Shell) -> None:
    with _running(shell, "--interval", "0.1s", "--json", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        frames = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    assert frames[0]["at"] < frames[1]["at"] < frames[2]["at"]


@pytest.mark.parametrize("end", [b"q", b"\x03"], ids=["q", "ctrl-c"])
def test_on_a_terminal_it_has_the_screen_until_q_or_ctrl_c(shell: Shell, end: bytes) -> None:
    shell.end("dead", queue="mail")
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    try:
        environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
        with _running(
            shell,
            "--interval",
            "0.2s",
            stdin=theirs,
            stdout=theirs,
            env=environment,
            start_new_session=True,
            preexec_fn=_take_terminal,
        ) as process:
            seen = _read_until(ours, b"", b"submitted 0/s")
            assert b"\x1b[?1049h" in seen  # the other screen
            seen = _read_until(ours, seen, b"the server is busy")
            os.write(ours, b"x")
            os.write(ours, b"\x1b[Bp")
            seen = _read_until(ours, seen, b"pause queue mail? y or n")
            os.write(ours, b"y")
            seen = _read_until(ours, seen, b"mail is paused")
            os.write(ours, end)
            seen = _read_until(ours, seen, b"\x1b[?1049l")
            assert process.wait(20) == 0
        assert termios.tcgetattr(theirs) == before
        assert [
            one["queue"] for one in shell.ok("stats", "--json").json["queues"] if one["paused"]
        ] == ["mail"]
    finally:
        os.close(ours)
        os.close(theirs)


def _take_terminal() -> None:
    """So that Ctrl-C on it is a signal for the command."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _read_until(terminal: int, seen: bytes, wanted: bytes) -> bytes:
    end = time.monotonic() + 30
    while wanted not in seen:
        assert time.monotonic() < end, seen
        if select.select([terminal], [], [], 0.5)[0]:
            seen += os.read(terminal, 65536)
    return seen


async def test_an_outage_is_sat_out_on_the_terminal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shown: list[str] = []
    stop = asyncio.Event()

    class Recorder:
        def __init__(self, **_: object) -> None: ...

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

        def update(self, group: Group, *, refresh: bool) -> None:
            shown.append("\n".join(line.plain for line in group.renderables))  # type: ignore[union-attr]

    monkeypatch.setattr(top, "Live", Recorder)
    async with await connect("memory:") as jobs:
        watch = Watch(jobs)
        await watch.begin()
        frame = watch.frame
        answers = iter([frame, None, frame])

        async def shaky() -> Frame:
            answer = next(answers)
            if answer is None:
                raise StoreUnavailable("the server is\ngone")
            if len(shown) == 2:
                stop.set()
            return await answer()

        monkeypatch.setattr(watch, "frame", shaky)
        session = Session(Settings(url="memory:"), jobs, Output(as_json=False))
        await top._show(session, watch, stop, 0.01)
    good, bad, again = shown
    assert good.startswith("headrace top  memory:")
    assert bad.startswith("the store does not answer: the server is gone\nheadrace top  memory:")
    assert again.startswith("headrace top")
