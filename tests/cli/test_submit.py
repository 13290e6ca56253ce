from __future__ import annotations

import asyncio
import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from headrace import Headrace, JobManager, Worker
from headrace.clock import ManualClock
from headrace.codec import PAYLOAD_BYTES_DEFAULT
from tests.cli.shell import Shell


def _stdin(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(
        "sys.stdin", SimpleNamespace(buffer=io.BytesIO(content), isatty=lambda: False)
    )


def test_submit_says_what_it_stored(shell: Shell) -> None:
    answer = shell.ok("submit", "send_email", "--id", "a", "--queue", "mail")
    assert answer.out == "submitted a (send_email, queue mail, pending)\n"


def test_submit_takes_every_field(shell: Shell) -> None:
    first = shell.submit("extract")
    job = shell.ok(
        "submit", "load", "--json", "--id", "b", "--queue", "etl", "--priority", "HIGH",
        "--tag", "y=2", "--tag", "x", "--key", "k", "--at", "2030-01-01T02:00:00+02:00",
        "--after", first, "--max-attempts", "7", "--payload", '{"rows": [1, 2.5, null, "ü"]}',
    ).json  # fmt: skip
    assert job["created"] is True
    assert {name: job[name] for name in ("id", "type", "queue", "priority", "tags", "key")} == {
        "id": "b",
        "type": "load",
        "queue": "etl",
        "priority": 1,
        "tags": ["x", "y=2"],
        "key": "k",
    }
    assert job["payload"] == {"rows": [1, 2.5, None, "ü"]}
    assert job["run_at"] == "2030-01-01T00:00:00Z"
    assert (job["max_attempts"], job["state"], job["tenant"]) == (7, "blocked", "default")
    assert "token" not in job


def test_a_delay_is_counted_from_now(shell: Shell) -> None:
    job = shell.ok("submit", "a", "--delay", "1h30m", "--json").json
    assert job["created_at"][:10] <= job["run_at"][:10]
    shown = shell.ok("explain", job["id"]).out
    assert "(in 1h29m)" in shown or "(in 1h30m)" in shown


def test_after_any_waits_for_one_of_several(shell: Shell) -> None:
    first, second = shell.submit("a"), shell.submit("a")
    third = shell.submit("b", "--after-any", first, "--after-any", second)
    kinds = [one["kind"] for one in shell.ok("show", third, "--json").json["depends_on"]]
    assert kinds == ["after_any", "after_any"]


def test_max_attempts_may_be_unlimited(shell: Shell) -> None:
    assert (
        shell.ok("submit", "a", "--max-attempts", "unlimited", "--json").json["max_attempts"]
        is None
    )


def test_a_payload_comes_from_a_file_or_standard_input(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "payload.json").write_text('{"from": "file"}')
    job = shell.ok("submit", "a", "--payload", "@payload.json", "--json").json
    assert job["payload"] == {"from": "file"}
    _stdin(monkeypatch, b'["from", "stdin"]')
    assert shell.ok("submit", "a", "--payload", "-", "--json").json["payload"] == ["from", "stdin"]


def test_bytes_go_in_as_they_come_out(shell: Shell) -> None:
    payload = {"$bytes": "AAEC"}
    job = shell.ok("submit", "a", "--payload", json.dumps(payload), "--json").json
    assert job["payload"] == payload
    assert shell.manage(lambda jobs: jobs.get(job["id"])).payload == b"\x00\x01\x02"


def test_a_held_key_gives_the_job_that_holds_it(shell: Shell) -> None:
    first = shell.submit("a", "--key", "k")
    again = shell.ok("submit", "a", "--key", "k")
    assert again.out == f"not submitted: key k is held by {first} (a, queue default, pending)\n"
    record = shell.ok("submit", "a", "--key", "k", "--json").json
    assert (record["id"], record["created"]) == (first, False)
    assert shell.ok("stats", "--json").json["total"] == 1


def test_a_task_without_arguments_runs_however_it_is_submitted(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.submit("report")
    _stdin(monkeypatch, b'{"type": "report"}\n{"type": "report", "payload": null}\n')
    shell.ok("submit", "--batch", "-", "--quiet")
    shell.ok("schedule", "add", "nightly", "--type", "report", "--every", "1h")
    clock = ManualClock(datetime.now(UTC) + timedelta(hours=1, minutes=1))

    async def fire(jobs: JobManager) -> int:
        return len((await jobs.fire_schedules()).jobs)

    assert shell.manage(fire, clock) == 1
    app = Headrace(shell.url)

    @app.task
    async def report(day: str = "today") -> str:
        return day

    async def run() -> int:
        with app.using(shell.url, clock=clock):
            async with app:
                return await Worker(app).drain()

    assert asyncio.run(run()) == 4
    done = shell.ok("list", "--state", "completed", "--json").json["jobs"]
    assert [job["type"] for job in done] == ["report"] * 4


def test_a_key_is_held_for_as_long_as_asked_for_by_option_and_by_file(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = b'{"type": "confirm", "key": "order-2", "key_hold_seconds": 86400}\n'
    first = shell.submit("confirm", "--key", "order-1", "--key-hold", "24h")
    _stdin(monkeypatch, line)
    second = shell.ok("submit", "--batch", "-", "--quiet").out.strip()
    shell.ok("cancel", first, second, "--yes")
    assert shell.submit("confirm", "--key", "order-1") == first
    _stdin(monkeypatch, line)
    assert shell.ok("submit", "--batch", "-", "--quiet").out.strip() == second
    answer = shell("submit", "confirm", "--key-hold", "24h")
    assert (answer.code, "give --key, too" in answer.err) == (2, True)


def test_count_submits_copies(shell: Shell) -> None:
    answer = shell.ok("submit", "a", "--count", "25")
    lines = answer.out.splitlines()
    assert lines[0] == "submitted 25 jobs"
    assert lines[-1] == "  and 5 more"
    ids = shell.ok("submit", "a", "--count", "3", "-q").out.split()
    assert len(set(ids)) == 3
    record = shell.ok("submit", "a", "--count", "2", "--json").json
    assert (record["created"], record["existing"]) == (2, 0)
    assert [one["created"] for one in record["jobs"]] == [True, True]
    assert shell.ok("stats", "--json").json["total"] == 30


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ((), 2, "give the TYPE of the job, or --batch FILE"),
        (("",), 2, "the type is empty"),
        (("a", "--payload", "{nope"), 2, "the payload '{nope' is not JSON"),
        (("a", "--payload", "@missing.json"), 2, "missing.json cannot be read: No such file"),
        (("a", "--payload", "NaN"), 2, "is not JSON"),
        (("a", "--priority", "urgent"), 2, "'urgent' is not a priority: one of 0 critical, 1 high"),
        (("a", "--priority", "5"), 2, "'5' is not a priority"),
        (("a", "--at", "2026-01-01T00:00"), 2, "has no time zone"),
        (("a", "--at", "tomorrow"), 2, "'tomorrow' is not a time"),
        (("a", "--delay", "1y"), 2, "'1y' is not a duration"),
        (("a", "--delay", "9999999d"), 2, "the limit is"),
        (("a", "--delay", "1s", "--at", "2030-01-01T00:00:00Z"), 2, "give --delay or --at"),
        (("a", "--max-attempts", "0"), 2, "'0' is not a number of 1 or more"),
        (("a", "--count", "0"), 2, "--count"),
        (("a", "--count", "2", "--key", "k"), 2, "leave out --id and --key"),
        (("a", "--key", "k" * 257), 2, "the limit is 256"),
        (("a", "--tag", ""), 2, "a tag is empty"),
        (("a", "--after", "nothing"), 3, "depends on nothing, which was not found"),
        (("a", "--id", "taken"), 1, "a job with id taken is stored already"),
        (("a", "--payload", f'"{"x" * PAYLOAD_BYTES_DEFAULT}"'), 2, "the limit is"),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, tuple) else "",
)
def test_what_is_wrong_is_said_and_nothing_is_stored(
    shell: Shell, words: tuple[str, ...], code: int, told: str
) -> None:
    shell.submit("a", "--id", "taken")
    answer = shell("submit", *words)
    assert (answer.code, answer.out) == (code, "")
    assert told in answer.err
    assert answer.err.count("\n") == 1
    assert shell.ok("stats", "--json").json["total"] == 1


def test_memory_is_allowed_with_a_warning(shell: Shell) -> None:
    answer = shell.bare("--url", "memory:", "submit", "a")
    assert answer.code == 0
    assert answer.out.startswith("submitted ")
    assert answer.err.startswith("headrace: warning: memory: lives in this process only")


def test_submit_creates_the_file(shell: Shell, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    assert shell.bare("submit", "a", "--url", url).code == 0
    assert shell.bare("stats", "--url", url, "--json").json["total"] == 1
