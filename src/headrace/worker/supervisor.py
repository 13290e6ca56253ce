"""Several worker processes on one host: started together, started again when one dies."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from headrace.retry import doubling
from headrace.worker.probes import SOCKET_VARIABLE

logger = logging.getLogger("headrace.worker")

SUPERVISED_VARIABLE = "HEADRACE_SUPERVISED"
_RESTART_SECONDS = (0.5, 30.0)
_ENDED_WHILE_STARTING = (-signal.SIGTERM, -signal.SIGINT)
"""It had not come to handle signals yet, so it had not claimed anything either."""
_LONG_LIFE_SECONDS = 10.0
"""A process that has lived this long did not die of how it was started."""


class Supervisor:
    """Keeps `count` processes of one command running until a signal; passes every signal on."""

    def __init__(
        self,
        command: Sequence[str],
        count: int,
        variables: Mapping[str, str] | None = None,
        sockets: Sequence[Path] = (),
    ) -> None:
        """`sockets`: where each process is to answer probes, if any."""
        self._command = list(command)
        self._sockets = list(sockets)
        self._variables = dict(variables or {})
        self._count = count
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        # Nobody is started while a signal is passed on, or the new one would never hear of it. A second
        # signal may interrupt the handler of the first.
        self._lock = threading.RLock()
        self._stopping = threading.Event()
        self._worst = 0

    def run(self) -> int:
        """The worst exit code of those that ended after the signal."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda got, _: self._pass_on(got))
        keepers = [
            threading.Thread(target=self._keep, args=(place,), name=f"headrace-process-{place}")
            for place in range(self._count)
        ]
        for keeper in keepers:
            keeper.start()
        for keeper in keepers:
            while keeper.is_alive():  # in slices, so that signals are seen
                keeper.join(0.2)
        return self._worst

    def _pass_on(self, number: int) -> None:
        with self._lock:
            self._stopping.set()
            for process in self._processes.values():
                process.send_signal(number)

    def _keep(self, place: int) -> None:
        pauses = doubling(*_RESTART_SECONDS)
        while (process := self._start(place)) is not None:
            began = time.monotonic()
            code = process.wait()
            if self._stopping.is_set():
                if code not in _ENDED_WHILE_STARTING:
                    self._worst = max(self._worst, abs(code))
                return
            if time.monotonic() - began > _LONG_LIFE_SECONDS:
                pauses = doubling(*_RESTART_SECONDS)
            pause = next(pauses)
            logger.warning(
                "worker process %d ended with %d; another starts in %.1f s",
                process.pid,
                code,
                pause,
                extra={"pid": process.pid, "exit_code": code},
            )
            self._stopping.wait(pause)

    def _start(self, place: int) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._stopping.is_set():
                return None
            # A session of its own: Ctrl-C reaches it once, from us. Its standard input tells it
            # whether we are alive.
            variables = {**os.environ, **self._variables, SUPERVISED_VARIABLE: "1"}
            if self._sockets:
                self._sockets[place].unlink(missing_ok=True)  # of the process that was here before
                variables[SOCKET_VARIABLE] = str(self._sockets[place])
            process = subprocess.Popen(  # noqa: S603 - our own command
                self._command, stdin=subprocess.PIPE, start_new_session=True, env=variables
            )
            self._processes[place] = process
            return process
