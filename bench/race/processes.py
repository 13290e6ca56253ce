"""The processes of one system: the driver, which submits, and its workers. Only these are ever ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import psutil  # type: ignore[import-untyped]  # comes with the server's wheel

from bench.race import ledger
from bench.race.driver import PAYLOAD_VARIABLE, URL_VARIABLE
from bench.race.entrants import Entrant
from bench.race.servers import cpu_seconds

ROOT = Path(__file__).parents[2]
_STOP_SECONDS = 8.0


class DriverFailed(Exception):
    """It could not do what it was told, or is gone."""


class Processes:
    """Starts what belongs to one system, in its environment, pointed at one server and one ledger."""

    def __init__(
        self,
        entrant: Entrant,
        programs: Path,
        *,
        url: str,
        book: Path,
        log: Path,
        payload_bytes: int,
    ) -> None:
        self._entrant = entrant
        self._programs = programs
        self._url = url
        self._log = log
        self._environment = os.environ | {
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}" if entrant.is_ours else str(ROOT),
            "PYTHONUNBUFFERED": "1",
            ledger.VARIABLE: str(book),
            URL_VARIABLE: url,
            PAYLOAD_VARIABLE: str(payload_bytes),
        }

    def driver(self) -> Driver:
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [*self._module(), self._entrant.module],
                env=self._environment,
                cwd=self._log.parent,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        return Driver(process, self._log)

    @contextlib.contextmanager
    def workers(self, count: int) -> Iterator[Workers]:
        started: list[subprocess.Popen[bytes]] = []
        try:
            with self._log.open("ab") as log:
                started.extend(
                    subprocess.Popen(
                        self._command(number),
                        env=self._environment,
                        cwd=self._log.parent,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                    for number in range(count)
                )
            yield Workers(started)
        finally:
            _stop(started)

    def _module(self) -> list[str]:
        return [str(self._programs / "python"), "-m", "bench.race.driver"]

    def _command(self, number: int) -> list[str]:
        if not self._entrant.worker:
            return [*self._module(), self._entrant.module, "worker"]
        program, *words = self._entrant.worker
        # An absolute program stays as it is.
        told = (word.format(number=number, url=self._url) for word in words)
        return [str(self._programs / program), *told]


class Workers:
    def __init__(self, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        self._processes = processes
        self._roots = [psutil.Process(process.pid) for process in processes]

    @property
    def are_up(self) -> bool:
        return all(process.poll() is None for process in self._processes)

    def cpu_seconds(self) -> float:
        return cpu_seconds(self._roots)


class Driver:
    """Answers one order at a time."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log
        self._read()

    def ask(self, do: str, *, first: int = 0, jobs: int = 0) -> dict[str, Any]:
        _file(self._process.stdin).write(
            json.dumps({"do": do, "first": first, "jobs": jobs}) + "\n"
        )
        _file(self._process.stdin).flush()
        return self._read()

    def left(self) -> int:
        return int(self.ask("left")["left"])

    def close(self) -> None:
        _stop([self._process])

    def _read(self) -> dict[str, Any]:
        while line := _file(self._process.stdout).readline():
            if line.startswith("{"):  # a system may print words of its own
                answer: dict[str, Any] = json.loads(line)
                if "error" in answer:
                    raise DriverFailed(answer["error"])
                return answer
        raise DriverFailed(f"it ended; its last words: {self._log.read_text()[-1000:]}")


def _file(file: IO[str] | None) -> IO[str]:
    assert file is not None
    return file


def _stop(processes: Sequence[subprocess.Popen[Any]]) -> None:
    """Each was started in a session of its own, so its group is it and what it has started."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
