"""Start a worker again whenever the source of its application changes: for development."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from headrace.worker.supervisor import SUPERVISED_VARIABLE

logger = logging.getLogger("headrace.worker")

_LOOK_SECONDS = 0.5
_PASSED_BY = frozenset({"__pycache__", "build", "dist", "node_modules", "site-packages", "venv"})
_SOURCE = ".py"


class Reloader:
    """Keeps one worker process running over the source as it is now, until a signal.

    A change asks the worker to end as SIGTERM does, so its handlers finish within the grace period. One
    that ends by itself, by a mistake in the source, is started again at the next change.
    """

    def __init__(self, command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> None:
        self._command = list(command)
        self._folder = folder
        self._variables = {**os.environ, **variables, SUPERVISED_VARIABLE: "1"}
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        """The exit code of the worker that the signal ended."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda got, _: self._pass_on(got))
        seen = dict(sources(self._folder))
        process = self._start()
        ended_by_itself = False
        while not self._stopping.wait(_LOOK_SECONDS):
            if not ended_by_itself and process.poll() is not None:
                ended_by_itself = True
                logger.warning(
                    "the worker ended with %d; the next change starts it again", process.returncode
                )
            now = dict(sources(self._folder))
            if now == seen:
                continue
            changed = sorted(str(path) for path in now.keys() ^ seen.keys()) or sorted(
                str(path) for path, stamp in now.items() if seen[path] != stamp
            )
            logger.info("%s changed: the worker starts again", ", ".join(changed[:3]))
            seen = now
            process.terminate()
            process.wait()
            if self._stopping.is_set():
                break
            process = self._start()
            ended_by_itself = False
        return abs(process.wait())

    def _pass_on(self, number: int) -> None:
        self._stopping.set()
        if self._process is not None:
            self._process.send_signal(number)

    def _start(self) -> subprocess.Popen[bytes]:
        # Its standard input tells it whether we are alive. In a session of its own, Ctrl-C reaches it once.
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            self._command, stdin=subprocess.PIPE, start_new_session=True, env=self._variables
        )
        return self._process


def sources(folder: Path) -> Iterator[tuple[Path, tuple[int, int]]]:
    """The Python files in a folder and those below it, with what changes when they do."""
    for place, folders, files in os.walk(folder):
        folders[:] = [one for one in folders if one not in _PASSED_BY and not one.startswith(".")]
        for name in files:
            if name.endswith(_SOURCE):
                path = Path(place, name)
                try:
                    found = path.stat()
                except FileNotFoundError:
                    continue  # an editor has just replaced it
                yield path.relative_to(folder), (found.st_mtime_ns, found.st_size)
