"""Somebody who does what a page says: saves its files, types its commands, and compares what they print.

`command &` runs beside the others; `kill %1` and `kill -9 %1` end the first of these. While any of them
runs, a command that only looks is repeated until it prints what the page shows: people are slower.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

from tests.cli.pages import File, Typed, steady
from tests.cli.shell import Shell

PATIENCE_SECONDS = 60.0
LOOKING = frozenset({"list", "show", "stats", "events", "explain", "batch"})


class Reader:
    def __init__(self, shell: Shell, folder: Path) -> None:
        self._shell = shell
        self._folder = folder
        self._code = 0
        self._beside: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        for process in self._beside:
            process.kill()
            process.wait(20)

    def follow(self, step: File | Typed) -> None:
        match step:
            case File(name, content):
                (self._folder / name).write_text(content, "utf-8")
            case Typed(line, printed):
                self._type(shlex.split(line), steady(printed), line)

    def _type(self, words: list[str], expected: str, line: str) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            printed = steady(self._run(words))
            if printed == expected or not self._may_change(words) or time.monotonic() > end:
                break
            time.sleep(0.1)
        assert printed == expected, f"{line}\n{printed}"

    def _may_change(self, words: list[str]) -> bool:
        return words[0] == "headrace" and words[1] in LOOKING and self._has_company()

    def _has_company(self) -> bool:
        return any(process.poll() is None for process in self._beside)

    def _run(self, words: list[str]) -> str:
        match words:
            case ["echo", "$?"]:
                return str(self._code)
            case ["kill", "-9", place]:
                return self._end(place, signal.SIGKILL)
            case ["kill", place]:
                return self._end(place, signal.SIGTERM)
            case [*command, "&"]:
                return self._start(command)
            case ["headrace", *rest]:
                answer = self._shell.bare(*rest)
                self._code = answer.code
                return answer.out + answer.err
            case _:
                done = subprocess.run(
                    _command(words), cwd=self._folder, capture_output=True, text=True, check=False
                )
                self._code = done.returncode
                return done.stdout + done.stderr

    def _start(self, words: list[str]) -> str:
        log = self._folder / f"beside-{len(self._beside) + 1}.log"
        with log.open("wb") as file:
            self._beside.append(
                subprocess.Popen(_command(words), cwd=self._folder, stdout=file, stderr=file)
            )
        return f"[{len(self._beside)}] {self._beside[-1].pid}"

    def _end(self, place: str, number: signal.Signals) -> str:
        process = self._beside[int(place.removeprefix("%")) - 1]
        process.send_signal(number)
        code = process.wait(PATIENCE_SECONDS)
        assert code == (0 if number is signal.SIGTERM else -number)
        return ""


def _command(words: list[str]) -> list[str]:
    match words:
        case ["python", *rest]:
            return [sys.executable, *rest]
        case ["headrace", *rest]:
            return [sys.executable, "-m", "headrace.cli", *rest]
        case _:
            raise AssertionError(words)
