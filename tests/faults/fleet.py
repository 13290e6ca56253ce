"""Workers that are kept running while others kill and stop them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence

from tests.faults.processes import Processes, send, worker_command

SETTINGS = ("--concurrency", "10", "--children", "2", "--poll", "0.5s", "--log-json")


class Fleet:
    """So many workers; for each that is killed another starts. One that ends by itself is a defect."""

    def __init__(self, processes: Processes, url: str, app: str, count: int) -> None:
        self._processes = processes
        self._command: Sequence[str] = worker_command(url, app, *SETTINGS)
        self._count = count
        self._running: dict[int, asyncio.subprocess.Process] = {}
        self._killed: set[int] = set()
        self._stopped: set[int] = set()
        self._is_over = False
        self._started = 0
        self.defects: list[str] = []

    @property
    def standing(self) -> list[int]:
        """The workers that are neither dead nor stopped."""
        return sorted(self._running.keys() - self._killed - self._stopped)

    async def run(self) -> None:
        """Until `end`."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._count):
                group.create_task(self._keep_one())

    async def _keep_one(self) -> None:
        while not self._is_over:
            self._started += 1
            name = f"worker-{self._started}"
            process = await self._processes.start(name, *self._command)
            self._running[process.pid] = process
            code = await process.wait()
            del self._running[process.pid]
            if process.pid not in self._killed and not (self._is_over and code == 0):
                said = self._processes.said(name)[-2000:]
                self.defects.append(f"{name} ended by itself with exit code {code}: {said}")
                if not self._is_over:
                    await asyncio.sleep(1.0)  # a worker that cannot start must not spin

    def kill(self, pid: int) -> None:
        self._killed.add(pid)
        send(pid, signal.SIGKILL)

    def stop(self, pid: int) -> None:
        self._stopped.add(pid)
        send(pid, signal.SIGSTOP)

    def go_on(self, pid: int) -> None:
        send(pid, signal.SIGCONT)
        self._stopped.discard(pid)

    def end(self) -> None:
        """Ask all of them to end; `run` returns once they have."""
        self._is_over = True
        for pid in list(self._running):
            send(pid, signal.SIGTERM)
            self.go_on(pid)
