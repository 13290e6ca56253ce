"""A file of jobs: one JSON object per line, each error with the number of its line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import UNSET, UnsetType

from headrace import codec
from headrace.cli import values
from headrace.cli.exits import Ended, Exit
from headrace.cli.progress import progress
from headrace.cli.values import Written
from headrace.errors import HeadraceError, InvalidBatch
from headrace.manager.submission import BATCH_JOBS_MAX
from headrace.model import DEFAULT_QUEUE, Dependency, Priority
from headrace.redaction import Redacted
from headrace.spec import JobSpec

_NOT_STORED = "no job of the file was stored"
_REPORT_LINES = 1000


class BatchLine(Redacted, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of one line: those of a job's description, under the same names."""

    type: str
    payload: msgspec.Raw = msgspec.Raw(b"null")
    queue: str = DEFAULT_QUEUE
    tenant: str | None = None
    id: str | None = None
    priority: int | str = Priority.NORMAL
    run_at: datetime | None = None
    delay_seconds: float | None = None
    tags: list[str] | dict[str, str | int | float | bool] = []
    key: str | None = None
    key_hold_seconds: float | None = None
    limit_key: str | None = None
    after: list[str | Dependency] = []
    max_attempts: int | UnsetType | None = UNSET
    lease_seconds: float | UnsetType | None = UNSET
    timeout_seconds: float | UnsetType | None = UNSET
    lifetime_seconds: float | UnsetType | None = UNSET
    correlation_id: str | None = None
    callback_url: str | None = None

    def spec(self) -> JobSpec:
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        fields["payload"] = codec.decode(bytes(self.payload))
        fields["priority"] = values.priority(str(self.priority))
        return JobSpec(**fields)


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of a file, and the line that each came from."""

    name: str
    specs: list[JobSpec]
    lines: list[int]

    def located(self, error: HeadraceError, index: int) -> InvalidBatch:
        """The same error, with the line of the job that is to blame."""
        message = f"{self.name} line {self.lines[index]}: {error.message}"
        return InvalidBatch(message, index=index, cause=error)


def read_batch(path: str) -> Batch:
    """The jobs of the file (`-`: of standard input), each line checked. A bar shows how far it is."""
    name = "standard input" if path == "-" else path
    try:
        with (
            nullcontext(sys.stdin.buffer) if path == "-" else Path(path).open("rb") as file,
            progress("reading") as bar,
        ):
            size = _size(file)

            def report(done: int, jobs: int) -> None:
                bar.show(jobs, fraction=None if size is None else done / size)

            return _read(name, file, report)
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror}") from error


BATCH = Written("file", read_batch)


def _read(name: str, file: BinaryIO, report: Callable[[int, int], None]) -> Batch:
    """The error names the first bad line. Empty lines are passed over."""
    decoder = msgspec.json.Decoder(BatchLine)
    batch = Batch(name=name, specs=[], lines=[])
    done = 0
    for number, line in enumerate(file, start=1):
        done += len(line)
        if not line.strip():
            continue
        try:
            batch.specs.append(decoder.decode(line).spec())
        except (ValueError, HeadraceError) as error:
            raise _bad(f"{name} line {number}: {error}") from error
        batch.lines.append(number)
        if len(batch.specs) > BATCH_JOBS_MAX:
            raise _bad(
                f"{name} has more than {BATCH_JOBS_MAX:,} jobs, the most that are stored all at once: "
                "split the file"
            )
        if number % _REPORT_LINES == 0:
            report(done, len(batch.specs))
    if not batch.specs:
        raise _bad(f"{name} has no jobs")
    return batch


def _bad(message: str) -> Ended:
    return Ended(Exit.USAGE, InvalidBatch.code, f"{message}; {_NOT_STORED}")


def _size(file: BinaryIO) -> int | None:
    try:
        return os.fstat(file.fileno()).st_size or None
    except (OSError, AttributeError):
        return None
