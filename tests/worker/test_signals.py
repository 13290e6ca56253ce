"""Worker processes and the signals that end them."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from headrace import JobSpec, State, connect
from headrace.cli.app import headrace
from headrace.cli.worker import _single, worker
from headrace.model import Job

MODULE = """
import asyncio
from headrace import Headrace

app = Headrace("sqlite:///jobs.db")


@app.task
async def work(seconds: float) -> str:
    open("began", "w").close()
    await asyncio.sleep(seconds)
    return "finished"
"""


@contextmanager
def at_work(folder: Path, seconds: float, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker that has begun a job which takes so long."""
    (folder / "jobs.py").write_text(MODULE)

    async def submit() -> None:
        async with await connect(f"sqlite:///{folder}/jobs.db") as manager:
            await manager.submit(JobSpec(type="work", id="job", payload={"seconds": seconds}))

    asyncio.run(submit())
    command = [sys.executable, "-m", "headrace.cli", "worker", "jobs:app", *words]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + 60
            while not (folder / "began").exists():
                assert time.monotonic() < end
                time.sleep(0.02)
            yield process
        finally:
            process.kill()


def job_in(folder: Path) -> Job:
    async def get() -> Job:
        async with await connect(f"sqlite:///{folder}/jobs.db") as manager:
            return await manager.get("job")

    return asyncio.run(get())


def test_signals_that_come_together_are_one(tmp_path: Path) -> None:
    """As from a service manager that signals every process of a service."""
    with at_work(tmp_path, 1.5) as process:
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert job_in(tmp_path).state is State.COMPLETED


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    with at_work(tmp_path, 60) as process:
        process.send_signal(signal.SIGTERM)
        time.sleep(1.0)  # so that it counts as another one
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 1
    assert job_in(tmp_path).state is State.RUNNING  # its lease lapses


@pytest.mark.parametrize(
    ("words", "passed_on"),
    [
        (["--grace", "0"], ["--grace", "0.0"]),
        (["--queues", "a,b", "--tag", "x", "--tag", "y"], ["--tag", "x", "--tag", "y"]),
        (["--no-maintenance"], ["--no-maintenance"]),
    ],
)
def test_options_are_passed_on_to_each_process(words: list[str], passed_on: list[str]) -> None:
    context = click.Context(headrace, **headrace.context_settings)
    with worker.make_context("worker", ["jobs:app", "--processes", "2", *words], context) as ctx:
        command = _single(ctx)
    text = " ".join(command)
    assert " ".join(passed_on) in text
    assert "--processes" not in text
    assert "--log-json" not in text
