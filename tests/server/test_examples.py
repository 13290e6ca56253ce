"""Workers in other languages run as they are printed, and are fenced like any other."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from headrace.connect import connect
from headrace.model import State
from headrace.server import create_app
from headrace.spec import JobSpec
from tests.server.conftest import Server, listening

EXAMPLES = Path(__file__).parents[2] / "examples"
WORKERS = {
    "shell": (("sh", "curl", "jq"), ("sh", str(EXAMPLES / "worker.sh"))),
    "node": (("node",), ("node", str(EXAMPLES / "worker.mjs"))),
}


@pytest.mark.parametrize("language", WORKERS)
async def test_a_worker_runs_what_it_can_and_says_what_it_cannot(language: str) -> None:
    needed, command = WORKERS[language]
    missing = [program for program in needed if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} is not installed here")
    server = Server(manager := await connect("memory:"), None)  # type: ignore[arg-type]
    server.application = create_app(manager)
    specs = [
        JobSpec(type="shout", id="a/b c", payload={"text": "hello"}),
        JobSpec(type="shout", id="bad", payload=7, max_attempts=1),
        JobSpec(type="other", id="not mine"),
        JobSpec(type="shout", id="last", payload={"text": 'it\'s "é"'}),
    ]
    try:
        async with listening(server.application) as url:
            await manager.submit_many(specs)
            environment = {
                **os.environ,
                "HEADRACE": url,
                "HEADRACE_TOKEN": await server.token("work"),
                "JOBS": "3",
                "BEAT": "0.2",
            }
            worker = await asyncio.create_subprocess_exec(*command, env=environment)
            try:
                await asyncio.wait_for(worker.wait(), 60)
            finally:
                if worker.returncode is None:
                    worker.kill()
        jobs = await manager.look_up([spec.id or "" for spec in specs])
        assert jobs["a/b c"].result == "HELLO"
        assert jobs["last"].result == 'IT\'S "é"'.replace("é", "É" if language == "node" else "é")
        assert (jobs["bad"].state, jobs["not mine"].state) == (State.DEAD, State.PENDING)
        assert jobs["bad"].failure is not None
        assert "text to shout" in jobs["bad"].failure.message
    finally:
        await server.close()
