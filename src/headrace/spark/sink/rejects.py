"""The rejects table: rows that could not be jobs, why, and where they stood. A Delta table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from headrace.spark.schemas import TIME
from headrace.spark.sink.rows import BadRow

REJECTS = pa.schema(
    [
        pa.field("write_id", pa.string()),
        pa.field("batch", pa.int64()),
        pa.field("partition", pa.int32()),
        pa.field("row", pa.int64()),
        pa.field("code", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("data", pa.string()),
        pa.field("rejected_at", TIME),
    ]
)
"""One row per bad row. `batch` is a stream's, NULL for a write of its own; `data` is the row as JSON, cut."""

_TRIES = 20


def keep_rejects(path: str, write_id: str, batch: int | None, rows: Sequence[BadRow]) -> None:
    """Make the table hold exactly these rows of this write (a stream: of this batch of it).

    One commit, so it may be repeated: a replayed batch, or the whole write under the same name, leaves
    each row once.
    """
    from deltalake.exceptions import CommitFailedError

    for tries in range(_TRIES):
        try:
            _commit(path, write_id, batch, rows)
            return
        except CommitFailedError:  # others write to it, or make it, at the same time
            if tries == _TRIES - 1:
                raise


def _commit(path: str, write_id: str, batch: int | None, rows: Sequence[BadRow]) -> None:
    from deltalake import DeltaTable, write_deltalake

    there = DeltaTable.is_deltatable(path)
    if not (rows or there):
        return
    table = _table(write_id, batch, rows)
    if there:
        write_deltalake(
            path, table, mode="overwrite", predicate=f"write_id = '{write_id}'", schema_mode="merge"
        )
    else:
        if "://" not in path:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_deltalake(path, table, mode="append")


def _table(write_id: str, batch: int | None, rows: Sequence[BadRow]) -> pa.Table:
    count = len(rows)
    return pa.table(
        [
            pa.array([write_id] * count, pa.string()),
            pa.array([batch] * count, pa.int64()),
            pa.array([row.partition for row in rows], pa.int32()),
            pa.array([row.row for row in rows], pa.int64()),
            pa.array([row.code for row in rows], pa.string()),
            pa.array([row.reason for row in rows], pa.string()),
            pa.array([row.data for row in rows], pa.string()),
            pa.array([datetime.now(UTC)] * count, TIME),
        ],
        schema=REJECTS,
    )
