"""How a write fails."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import HeadraceError
from headrace.spark.sink.rows import BadRow

EXAMPLES_MAX = 10


class BadRows(HeadraceError):
    """Rows of the write cannot be jobs."""

    code = "BAD_ROWS"

    @classmethod
    def of(cls, count: int, examples: Sequence[BadRow], stored: str) -> BadRows:
        """`stored`: what became of the other rows."""
        shown = sorted(examples, key=lambda one: (one.partition, one.row))[:EXAMPLES_MAX]
        first = f", the first {len(shown)} of them" if count > len(shown) else ""
        listed = "\n".join(f"  {one}" for one in shown)
        return cls(
            f"{count} rows cannot be jobs; {stored}. Mend them, or let bad_rows = reject put them "
            f"aside{first}:\n{listed}"
        )


class RejectsNotKept(HeadraceError):
    """The rejects table could not be written."""

    code = "REJECTS_NOT_KEPT"

    @classmethod
    def at(cls, path: str, count: int, error: Exception, stored: str) -> RejectsNotKept:
        """`stored`: what became of the other rows."""
        return cls(
            f"the rejects table {path} could not be written, for {count} bad rows of this write "
            f"({type(error).__name__}: {error}); {stored}"
        )


class RowsChanged(HeadraceError):
    """A row's name was given to other contents by an earlier attempt: the rows do not keep their order."""

    code = "ROWS_CHANGED"

    @classmethod
    def at(cls, job_id: str) -> RowsChanged:
        return cls(
            f"job {job_id} was stored with other contents by an earlier attempt: the rows of this DataFrame "
            "do not come in the same order each time, so their places do not name them. What was stored "
            "stays; sort the rows, or give each a key, and write again under another write_id"
        )
