"""Handlers in child processes: killed, limited, replaced, and none the wiser."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace import Headrace, State
from headrace.app import Task
from headrace.model import Category
from headrace.worker import Settings, Worker
from headrace.worker.children import is_isolable
from tests.worker import handlers
from tests.worker.running import reached, until, working


@pytest.fixture
def app(tmp_path: Path) -> Headrace:
    return handlers.make_app(f"sqlite:///{tmp_path}/jobs.db")


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


async def pid_in(path: Path) -> int:
    await until(lambda: bool(read(path)))
    return int(read(path))


async def test_a_child_runs_handlers_with_their_context(app: Headrace) -> None:
    async with app, working(app):
        first = await handlers.in_child.submit(1)
        result = await app.wait(first, 60)
        assert result["n"] == 1
        assert result["pid"] != os.getpid()
        ended = await app.get(first)
        assert (ended.progress, ended.progress_note) == (0.5, "half way")
        assert ended.checkpoint == {"n": 1}
        assert ended.log[0]["fields"] == {"n": 1}
        # An idle child is used again. It may be idle a moment after its job has ended.
        pids = [result["pid"]]
        for number in range(2, 6):
            again = await app.wait(await handlers.in_child.submit(number), 60)
            pids.append(again["pid"])
        assert len(set(pids)) < len(pids)
        assert await app.wait(await handlers.async_in_child.submit(4), 60) == 5


async def test_a_child_of_a_large_process_is_no_large_child(app: Headrace) -> None:
    large = b"x" * (600 * 2**20)  # more than a child may have held to be used again
    del large
    async with app, working(app):
        first = await app.wait(await handlers.in_child.submit(1), 60)
        pids = {(await app.wait(await handlers.in_child.submit(n), 60))["pid"] for n in range(4)}
    assert first["pid"] in pids or len(pids) < 4


async def test_a_child_is_replaced_after_so_many_jobs(app: Headrace) -> None:
    async with app, working(app, child_jobs=1):
        pids = [(await app.wait(await handlers.in_child.submit(n), 60))["pid"] for n in range(2)]
    assert len(set(pids)) == 2
    assert all(is_gone(pid) for pid in pids)


async def test_what_a_child_raises_counts_as_it_would_here(app: Headrace) -> None:
    async with app, working(app):
        jobs = [
            await handlers.raise_in_child.submit(kind)
            for kind in ("temporary", "permanent", "", "timeout")
        ]
        temporary, permanent, other, late = [
            await reached(app, job, State.RETRYING, State.FAILED) for job in jobs
        ]
    assert (temporary.run_at - temporary.updated_at).total_seconds() == 7200
    assert permanent.state is State.FAILED
    assert permanent.failure is not None
    assert permanent.failure.code == "NO_SUCH_ROW"
    assert other.failure is not None
    assert other.failure.code == "KeyError"
    assert late.failure is not None
    assert late.failure.category is Category.TIMEOUT


async def test_past_its_timeout_the_child_is_gone(app: Headrace, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    async with app, working(app):
        job = await handlers.sleep_in_child.options(timeout=4.0, max_attempts=1).submit(str(path))
        pid = await pid_in(path)
        ended = await reached(app, job, State.DEAD)
        assert ended.failure is not None
        assert ended.failure.category is Category.TIMEOUT
        assert is_gone(pid)


async def test_cancelled_the_child_is_gone_within_a_second(app: Headrace, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    async with app, working(app, watch_seconds=Settings().watch_seconds):
        job = await handlers.sleep_in_child.submit(str(path))
        pid = await pid_in(path)
        asked = time.monotonic()
        await app.cancel(job)
        await until(lambda: is_gone(pid))
        assert time.monotonic() - asked < 2  # a second, and one for a busy machine
        await reached(app, job, State.CANCELLED)


async def test_too_much_memory_is_a_failure_of_the_system(app: Headrace) -> None:
    async with app, working(app, child_memory_mb=1024):
        ended = await reached(app, await handlers.eat_memory.submit(), State.DEAD)
    assert ended.failure is not None
    assert ended.failure.category is Category.SYSTEM
    assert ended.failure.code == "memory_exceeded"


async def test_a_suspect_takes_only_its_child_along(app: Headrace) -> None:
    """A job that has lost two workers is run where it can hurt nobody; after three times it is dead."""
    async with app:
        manager = await app.manager()
        poison = await handlers.die_if_asked.submit(die=True)
        innocent = await handlers.die_if_asked.submit(die=False)
        for _ in range(2):  # the worker of both dies with the poison, and so does the next
            assert len(await manager.claim("gone", types=["die_if_asked"], limit=2)) == 2
            await manager.expire_worker("gone")
        async with working(app):
            assert await app.wait(innocent, 60) == "lived"
            ended = await reached(app, poison, State.DEAD)
    assert ended.losses == 2
    assert ended.failures == 1
    assert ended.failure is not None
    assert ended.failure.category is Category.SYSTEM
    assert ended.failure.code == "process_died"


def test_only_what_a_child_can_find_is_isolated() -> None:
    app = Headrace("memory:")

    @app.task
    async def nested() -> None: ...

    assert isinstance(nested, Task)
    assert not is_isolable(nested)
    assert is_isolable(handlers.die_if_asked)


async def test_draining_ends_its_children(app: Headrace) -> None:
    async with app:
        job = await handlers.in_child.submit(3)
        await Worker(app, Settings(maintenance=False)).drain()
        result = await app.result(job)
        await until(lambda: is_gone(result["pid"]))


def test_a_child_whose_worker_is_killed_ends_without_a_word(tmp_path: Path) -> None:
    """Also when it notices in the middle of an answer."""
    script = tmp_path / "worker.py"
    script.write_text(
        "import multiprocessing, os\n"
        "from headrace.worker import child\n"
        "if __name__ == '__main__':\n"
        "    spawn = multiprocessing.get_context('spawn')\n"
        "    ours, theirs = spawn.Pipe()\n"
        "    spawn.Process(target=child.main, args=(theirs, None), daemon=True).start()\n"
        "    theirs.close()\n"
        "    ours.send(('no_such_module', 'task', None, None))\n"  # its answer finds nobody
        "    ours.close()\n"
        "    os.wait()\n"
    )
    ended = subprocess.run(
        [sys.executable, str(script)], capture_output=True, timeout=60, check=True
    )
    assert ended.stderr == b""
