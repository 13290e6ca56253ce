"""What the readers need of a store: where its log ends, how to cut a table up, and the rows of a piece."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

Table = Literal["jobs", "events", "histories"]
"""`histories`: the events of whole jobs, from which attempts are folded; columns as those of events."""

_OF_THE_JOB = {"tenant": "tenant", "queue": "queue", "type": "type"}
LIST_COLUMNS: Mapping[Table, Mapping[str, str]] = {
    "jobs": {**_OF_THE_JOB, "state": "state"},
    "events": {**_OF_THE_JOB, "state": "after"},
    "histories": _OF_THE_JOB,
}
"""By predicate, the column whose value must be one of its values. Histories leave out the state, and the
times: an attempt is made of all events of its job, and has them only then."""

TIME_COLUMN: Mapping[Table, str] = {"jobs": "created_at", "events": "at"}
"""The column for since and until."""


@dataclass(frozen=True)
class Slice(InputPartition):
    """The rows of one task: those after the one place, up to and including the other.

    Places are cursors for events, and seqs of jobs as text for jobs and histories.
    """

    after: str
    upto: str
    log_end: str = ""
    """For histories: the events are read up to this cursor."""
    unbroken: bool = False
    """Reading raises LogTrimmed if the log no longer holds the events right behind `after`."""


@dataclass(frozen=True)
class Pieces:
    """In how many parts to read: so many, or as many as the rows make."""

    parts: int | None
    rows_each: int

    def count(self, rows: float) -> int:
        return self.parts or max(1, -(-int(rows) // self.rows_each))


class Extract(Protocol):
    """One store, as one read of Spark sees it. Travels to the tasks; connects where it is called.

    A method that cannot reach the store raises StoreUnavailable.
    """

    def place(self, cursor: str) -> Any:
        """What compares as the events' places in the log do. Raises InvalidCursor."""
        ...

    def log_end(self, *, settled: bool = False) -> str:
        """The cursor of the last event that may be read now; "" if there is none.

        `settled`: wait a moment for those that may be read in a moment.
        """
        ...

    def log_start(self) -> str:
        """A cursor before which the log holds nothing any more; "" if nothing was trimmed."""
        ...

    def further(self, after: str, rows: int, upto: str) -> str:
        """The cursor about so many events behind `after`, and at most `upto`."""
        ...

    def mark(self, cursor: str) -> str | None:
        """What tells the event with this cursor from other stores' events; None if it is not there."""
        ...

    def cut_log(self, after: str, upto: str, pieces: Pieces) -> Sequence[Slice]:
        """The log between two cursors, in slices of about equal size, in order."""
        ...

    def count_log(self, after: str, upto: str) -> tuple[int, int]:
        """How many events the log holds between two cursors, and the sum of their seqs."""
        ...

    def cut(self, table: Table, pieces: Pieces) -> Sequence[Slice]:
        """All that the table holds and that may be read now, in slices of about equal size."""
        ...

    def rows(self, table: Table, piece: Slice, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """These columns of the slice's rows, as far as the predicates hold (for a job, not an attempt)."""
        ...
