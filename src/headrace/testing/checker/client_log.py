"""What clients write down while they run: one line per fact, in a file that survives their kill -9.

Each line is appended in a single write, so several threads of a process may share a file, and a process
that is killed leaves whole lines behind.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from headrace.stores.base import KeyScope
from headrace.testing.checker.histories import Client, Run, Said, Submission


class Asked(msgspec.Struct, frozen=True, kw_only=True, tag="asked"):
    """Written before jobs are submitted."""

    ticket: str
    ids: Sequence[str | None]
    keys: Sequence[KeyScope | None]


class Answered(msgspec.Struct, frozen=True, kw_only=True, tag="answered"):
    """Written once the submission is acknowledged."""

    ticket: str
    ids: Sequence[str]


class Began(msgspec.Struct, frozen=True, kw_only=True, tag="began"):
    job_id: str
    token: str
    attempt: int
    process: int
    at: float


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag="ended"):
    job_id: str
    token: str
    said: Said
    at: float


Line = Asked | Answered | Began | Ended

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


class ClientLog:
    """Appends to one file; what has been written is there, whatever happens to the process then."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def close(self) -> None:
        os.close(self._file)

    def asked(
        self, ticket: str, ids: Sequence[str | None], keys: Sequence[KeyScope | None]
    ) -> None:
        self._write(Asked(ticket=ticket, ids=ids, keys=keys))

    def answered(self, ticket: str, ids: Sequence[str]) -> None:
        self._write(Answered(ticket=ticket, ids=ids))

    def began(self, job_id: str, token: str, attempt: int) -> None:
        self._write(
            Began(job_id=job_id, token=token, attempt=attempt, process=os.getpid(), at=_now())
        )

    def ended(self, job_id: str, token: str, said: Said) -> None:
        self._write(Ended(job_id=job_id, token=token, said=said, at=_now()))

    def _write(self, line: Line) -> None:
        os.write(self._file, _encoder.encode(line) + b"\n")


def read_lines(path: Path) -> Iterator[Line]:
    """The whole lines of one file. A last one without its end was never written."""
    for line in path.read_bytes().splitlines(keepends=True):
        if line.endswith(b"\n"):
            yield _decoder.decode(line)


def read_client_logs(folder: Path) -> Client:
    """What all clients together have seen: every file `*.log` of the folder."""
    submissions: dict[str, list[Submission]] = {}
    runs: list[Run] = []
    for path in sorted(folder.glob("*.log")):
        open_runs: dict[tuple[str, str], int] = {}
        for line in read_lines(path):
            match line:
                case Asked():
                    submissions[line.ticket] = [
                        Submission(job_id=job_id, key=key)
                        for job_id, key in zip(line.ids, line.keys, strict=True)
                    ]
                case Answered():
                    submissions[line.ticket] = [
                        msgspec.structs.replace(one, answer=answer)
                        for one, answer in zip(submissions[line.ticket], line.ids, strict=True)
                    ]
                case Began():
                    open_runs[line.job_id, line.token] = len(runs)
                    runs.append(_run(line))
                case Ended():
                    place = open_runs[line.job_id, line.token]
                    runs[place] = msgspec.structs.replace(
                        runs[place], ended=line.at, said=line.said
                    )
    return Client(
        submissions=[one for batch in submissions.values() for one in batch],
        runs=runs,
    )


def _run(line: Began) -> Run:
    return Run(
        job_id=line.job_id,
        token=line.token,
        attempt=line.attempt,
        process=line.process,
        began=line.at,
    )


def _now() -> float:
    """One clock for all processes of a host, which nobody sets."""
    return time.monotonic()
