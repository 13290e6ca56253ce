"""The command line as a user types it, in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

import pytest

from headrace import JobManager, connect
from headrace.cli import main
from headrace.clock import Clock

T = TypeVar("T")


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


class Shell:
    """Runs commands on one store, and prepares it through the manager."""

    def __init__(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.url = url
        self._capsys = capsys

    def __call__(self, *words: str) -> Answer:
        return self.bare("--url", self.url, *words)

    def bare(self, *words: str) -> Answer:
        """Without the url."""
        self._capsys.readouterr()
        code = main(words)
        captured = self._capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    def ok(self, *words: str) -> Answer:
        answer = self(*words)
        assert (answer.code, answer.err) == (0, ""), answer
        return answer

    def submit(self, *words: str) -> str:
        """The id of a new job."""
        return self.ok("submit", "-q", *words).out.strip()

    def state(self, job_id: str) -> str:
        state: str = self.ok("show", job_id, "--json").json["state"]
        return state

    def manage(self, work: Callable[[JobManager], Awaitable[T]], clock: Clock | None = None) -> T:
        """Do something to the store that the command line has no command for, such as work."""

        async def within() -> T:
            async with await connect(self.url, clock=clock) as jobs:
                return await work(jobs)

        return asyncio.run(within())

    def end(self, how: str, *, clock: Clock | None = None, **options: Any) -> str:
        """The id of a job that ended as completed, failed or dead."""

        async def work(jobs: JobManager) -> str:
            from headrace import JobSpec, PermanentError

            spec = JobSpec(type="work", max_attempts=1, priority=0, **options)
            await jobs.submit(spec)
            (job,) = await jobs.claim("worker-1")
            match how:
                case "completed":
                    await jobs.complete(job.id, job.token, result={"sum": 3})
                case "failed":
                    await jobs.fail(job.id, job.token, PermanentError("no such user", code="E1"))
                case "dead":
                    await jobs.fail(job.id, job.token, "the server is\nbusy")
                case _:
                    raise AssertionError(how)
            return job.id

        return self.manage(work, clock)

    def run(self, job_id: str) -> str:
        """Claim a job that is ready; its token."""

        async def work(jobs: JobManager) -> str:
            claimed = {job.id: job for job in await jobs.claim("worker-1", limit=100)}
            token = claimed[job_id].token
            assert token is not None
            return token

        return self.manage(work)
