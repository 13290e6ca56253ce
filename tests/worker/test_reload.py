"""`headrace worker --reload`: the source as it is now, without starting anything by hand."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

from headrace import JobSpec, connect
from headrace.worker.reload import sources

MODULE = """
from headrace import Headrace

app = Headrace("sqlite:///jobs.db")

@app.task
async def say() -> str:
    return {answer!r}
"""
PATIENCE_SECONDS = 60


def test_a_change_of_the_source_runs_the_next_job(tmp_path: Path) -> None:
    module = tmp_path / "jobs.py"
    module.write_text(MODULE.format(answer="one"))
    command = [sys.executable, "-m", "headrace.cli", "worker", "jobs:app", "--reload"]
    with subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=None
    ) as process:
        try:
            assert result(tmp_path) == "one"
            module.write_text(MODULE.format(answer="the second"))
            assert result(tmp_path, other_than="one") == "the second"
            module.write_text("app = (")  # as while it is being typed
            time.sleep(1)
            module.write_text(MODULE.format(answer="3"))
            assert result(tmp_path, other_than="the second") == "3"
            process.terminate()
            assert process.wait(PATIENCE_SECONDS) == 0
        finally:
            process.kill()
        assert process.stderr is not None
        said = process.stderr.read()
    assert "jobs.py changed: the worker starts again" in said


def result(folder: Path, other_than: str = "") -> object:
    """What a job says, once it says something new: the worker needs a moment to see a change."""

    async def ask() -> object:
        async with await connect(f"sqlite:///{folder}/jobs.db") as manager:
            end = time.monotonic() + PATIENCE_SECONDS
            while time.monotonic() < end:
                job = (await manager.submit(JobSpec(type="say", payload={}))).job
                while not (job := await manager.get(job.id)).is_terminal:
                    assert time.monotonic() < end, f"{job.state}"
                    await asyncio.sleep(0.05)
                if job.result != other_than:
                    return job.result
                await asyncio.sleep(0.1)
        raise AssertionError(f"still {other_than}")

    return asyncio.run(ask())


def test_what_is_looked_at(tmp_path: Path) -> None:
    for name in (
        "jobs.py",
        "shop/mail.py",
        ".venv/lib.py",
        "shop/__pycache__/mail.py",
        "notes.txt",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert {str(path) for path, _ in sources(tmp_path)} == {"jobs.py", "shop/mail.py"}


def test_it_runs_one_process(tmp_path: Path) -> None:
    found = subprocess.run(
        [
            sys.executable,
            "-m",
            "headrace.cli",
            "worker",
            "jobs:app",
            "--reload",
            "--processes",
            "2",
        ],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert found.returncode == 2
    assert "--reload runs one process" in found.stderr
