"""What a task tells the driver when it has done its part."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from pyspark.sql.datasource import WriterCommitMessage

from headrace.spark.sink.rows import BadRow


class GroupKey(NamedTuple):
    """What rows have in common that become jobs by one draft."""

    tenant: str
    queue: str
    type: str
    priority: int
    tags: tuple[str, ...]


@dataclass
class TaskDone(WriterCommitMessage):
    """One partition of a write. Only the message of the attempt that counts reaches the driver."""

    write_id: str
    partition: int
    rows: int = 0
    created: int = 0
    repeated: int = 0
    """Rows whose job was there already: stored by an earlier attempt, or holding the same key."""
    bad: int = 0
    kept: list[BadRow] = field(default_factory=list)
    """Of the bad rows: examples, or all of them if they are to be kept."""
    counted: int = 0
    """So many bad rows the other tasks of the write have been told of."""
    too_many: bool = False
    """All tasks together have more than may be kept: the driver will refuse the write."""
    staged: bytes = b""
    """All-or-nothing: rows that the driver is to submit, as an Arrow stream."""
    attempt: int = 0
    """All-or-nothing, in bulk: what its staged rows are known by."""
    staged_rows: int = 0
    staged_groups: list[GroupKey] = field(default_factory=list)
    """The groups of those rows, in the order of their numbers."""
