"""Processes of a test: started under a mark that all their descendants inherit, ended by their own ids."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[2]
MARK_VARIABLE = "HEADRACE_TEST_MARK"
LEFTOVER_SECONDS = 15.0
_ORPHANED = re.compile(
    r"Traceback \(most recent call last\):\n(?:  .*\n)*?"
    r'  File ".*multiprocessing/spawn\.py", line \d+, in _main\n(?:  .*\n)*'
    r"(?:EOFError: Ran out of input|_pickle\.UnpicklingError: pickle data was truncated)\n"
)
"""What Python prints in a child whose parent was killed before it had told the child what to run."""


class Processes:
    """Starts Python modules and finds out whether anything of them is left."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self.mark = uuid.uuid4().hex
        self._environment = {**os.environ, **environment, MARK_VARIABLE: self.mark}

    async def start(self, name: str, *arguments: str) -> asyncio.subprocess.Process:
        """`python -m …` in the root of the repository; what it says goes to a file of that name."""
        with (self._folder / f"{name}.err").open("ab") as said:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                *arguments,
                cwd=ROOT,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )

    def said(self, name: str) -> str:
        return (self._folder / f"{name}.err").read_text(errors="replace")

    def count_lines(self, text: str) -> int:
        """How often it was said, by all together."""
        return sum(
            text in line
            for path in self._folder.glob("*.err")
            for line in path.read_text(errors="replace").splitlines()
        )

    def complaints(self) -> list[str]:
        """Errors that were logged (as JSON), and whatever was not logged at all. Being killed leaves none."""
        return [
            f"{path.name}: {line}"
            for path in sorted(self._folder.glob("*.err"))
            for line in _ORPHANED.sub("", path.read_text(errors="replace")).splitlines()
            if not line.startswith("{") or '"level":"error"' in line
        ]

    def alive(self) -> list[int]:
        """Every process that carries the mark, grandchildren included."""
        wanted = f"{MARK_VARIABLE}={self.mark}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    environment = (entry / "environ").read_bytes().split(b"\0")
                except OSError:
                    continue  # it is gone, or another user's
                if wanted in environment:
                    found.append(int(entry.name))
        return found

    async def leftovers(self) -> list[int]:
        """Those that do not end by themselves within a while."""
        until = time.monotonic() + LEFTOVER_SECONDS
        while (left := self.alive()) and time.monotonic() < until:  # noqa: ASYNC110 - others end
            await asyncio.sleep(0.1)
        return left

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Nothing that was started here goes on, whatever went wrong."""
        for pid in self.alive():
            send(pid, signal.SIGKILL)


def worker_command(url: str, place: str, *more: str) -> Sequence[str]:
    return ("headrace.cli", "worker", place, "--url", url, *more)


def send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # it was faster
        os.kill(pid, number)
