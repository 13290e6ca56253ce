"""Headrace behind Django's tasks, in a real project: the backend, the command, transactions."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace import connect
from tests.stores.postgres.server import Schemas, without_schema

PROJECT = Path(__file__).parent / "project"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PROJECT, tmp_path / "project"))


def run(project: Path, store: str, *words: str, **variables: str) -> str:
    found = subprocess.run(
        [sys.executable, *words],
        check=False,
        cwd=project,
        env={**os.environ, "SHOP_STORE": store, **variables},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def test_tasks_run_and_give_their_results(store_url: str, project: Path) -> None:
    said = run(project, store_url, "scenario.py", "results", "failures")
    assert "results failures" in said


def test_tasks_commit_and_roll_back_with_the_rows_beside_them(
    postgres_schemas: Schemas, project: Path
) -> None:
    url = postgres_schemas.take()
    try:
        database = {"SHOP_DATABASE": without_schema(url)}
        assert "transactions" in run(project, url, "scenario.py", "transactions", **database)
    finally:
        asyncio.run(postgres_schemas.give_back(url))


def test_the_command_of_the_project_runs_them(project: Path) -> None:
    store = f"sqlite:///{project}/jobs.db"
    enqueue = "import scenario; print(scenario.tasks.total.enqueue(2, 3).id)"
    job_id = run(project, store, "-c", enqueue).strip()
    worker = subprocess.Popen(
        [sys.executable, "manage.py", "headrace_worker", "--concurrency", "2"],
        cwd=project,
        env={**os.environ, "SHOP_STORE": store},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert asyncio.run(ended(store, job_id)) == "5 EUR"
        worker.terminate()
        assert worker.wait(30) == 0
    finally:
        worker.kill()
        assert worker.stderr is not None
        said = worker.stderr.read()
        worker.stderr.close()
    assert "shop.tasks.greet, shop.tasks.total" in said


async def ended(store: str, job_id: str) -> object:
    async with await connect(store) as manager:
        end = time.monotonic() + 60
        while not (job := await manager.get(job_id)).is_terminal:
            assert time.monotonic() < end
            await asyncio.sleep(0.05)
        return job.result


def test_an_unknown_option_is_named(project: Path) -> None:
    (project / "settings.py").write_text(
        (project / "settings.py").read_text().replace('"max_attempts"', '"max_tries"')
    )
    with pytest.raises(
        AssertionError, match="there is no option 'max_tries'; known are app, database"
    ):
        run(project, "memory:", "scenario.py")
