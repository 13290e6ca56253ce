"""`headrace worker --processes 2` as a real process tree, and its jobs as seen from outside."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from headrace import Headrace, JobManager
from headrace.model import Job, State
from tests.faults.plain import app as plain
from tests.faults.processes import Processes, worker_command

PATIENCE_SECONDS = 60.0


class Supervised:
    """The supervisor, and a client of the same store."""

    def __init__(
        self, processes: Processes, process: asyncio.subprocess.Process, manager: JobManager
    ) -> None:
        self.processes = processes
        self.process = process
        self.manager = manager

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def said(self) -> str:
        return self.processes.said("supervisor")

    async def exit_code(self) -> int:
        return await asyncio.wait_for(self.process.wait(), PATIENCE_SECONDS)

    async def states(self) -> dict[State, int]:
        counts = (await self.manager.stats()).states
        return {state: count for state, count in counts.items() if count}

    async def jobs(self) -> list[Job]:
        return list((await self.manager.find(limit=1000)).jobs)

    async def until(self, condition: Callable[[], Awaitable[bool] | bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            answer = condition()
            if answer if isinstance(answer, bool) else await answer:
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"it never came to that: {await self.states()}\n{self.said}")
            await asyncio.sleep(0.05)

    async def until_ended(self) -> None:
        async def all_ended() -> bool:
            return all(job.is_terminal for job in await self.jobs())

        await self.until(all_ended)

    async def until_running(self, count: int) -> None:
        async def so_many_run() -> bool:
            return (await self.states()).get(State.RUNNING, 0) >= count

        await self.until(so_many_run)


@asynccontextmanager
async def supervised(
    url: str, folder: Path, *options: str
) -> AsyncIterator[tuple[Supervised, Headrace]]:
    """Two worker processes on the store, and the application to submit to them."""
    with plain.using(url):
        async with Processes(folder, {}) as processes, plain:
            command = worker_command(url, "tests.faults.plain:app", "--processes", "2", *options)
            process = await processes.start("supervisor", *command)
            yield Supervised(processes, process, await plain.manager()), plain
