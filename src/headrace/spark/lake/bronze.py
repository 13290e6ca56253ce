"""Bronze: events as they came, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.spark.lake.delta import Folder, Snapshot
from headrace.spark.lake.table import Check, Table, columns_of
from headrace.spark.schemas import EVENTS, meanings

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = EVENTS.append(pa.field("on", pa.date32())).append(pa.field("batch", pa.int64()))
BATCH = "headrace batch"
"""The mark that numbers the lake's batches, whatever stream they came by."""

EVENTS_TABLE = Table(
    name="bronze/events",
    grain="One row per change of a job, as the store's event log tells it.",
    key=("seq",),
    columns=columns_of(
        SCHEMA,
        {
            **meanings("events"),
            "on": "The day it happened, UTC; the table is partitioned by it.",
            "batch": "The run's batch that brought it.",
        },
    ),
    partition_by=("on",),
    checks=(
        Check(
            "every job's life begins with its enqueued event",
            """SELECT * FROM bronze_events
            WHERE seq >= :seq
              AND ((kind = 'enqueued') <> (before IS NULL) OR (kind = 'enqueued') <> (version = 1))""",
        ),
    ),
)


class Bronze:
    """The table of events. Appending is idempotent twice over: by the stream's batch, and by seq."""

    def __init__(self, lake: Path) -> None:
        self.folder = Folder(lake / EVENTS_TABLE.name, SCHEMA, EVENTS_TABLE.partition_by)

    def append(self, events: pa.Table, stream: str, stream_batch: int) -> int:
        """Take in what is new of these events; how many were.

        `stream` names the checkpoint that the batch was read by: a batch that is told again, because the
        pipeline died before its end, is known by it.
        """
        snapshot = self.folder.snapshot()
        if snapshot.mark(stream) >= stream_batch:
            return 0
        fresh = _unknown(events, snapshot)
        if not fresh.num_rows:
            return 0
        number = snapshot.mark(BATCH) + 1
        rows = fresh.append_column("on", fresh["at"].cast(pa.date32())).append_column(
            "batch", pa.repeat(pa.scalar(number, pa.int64()), fresh.num_rows)
        )
        marks = {stream: stream_batch, BATCH: number}
        self.folder.commit(snapshot, self.folder.write(rows), marks=marks)
        return int(fresh.num_rows)

    def batch(self, snapshot: Snapshot, number: int) -> pa.Table:
        """The events that one batch brought."""
        files = [file for file in snapshot.files if file.may_hold("batch", number, number)]
        return snapshot.read(EVENTS.names, where=pc.field("batch") == number, files=files)


def last_cursor(events: pa.Table) -> str:
    """The greatest of the events' cursors, in the order of the log."""
    # A cursor is one number, or several with colons between: the log's order is that of the numbers.
    parts = pc.split_pattern(events["cursor"].combine_chunks(), ":")
    count = int(pc.list_value_length(parts)[0].as_py())
    numbers = [pc.list_element(parts, place).cast(pa.int64()).to_numpy() for place in range(count)]
    last = np.lexsort(numbers[::-1])[-1]
    cursor: str = events["cursor"][int(last)].as_py()
    return cursor


def _unknown(events: pa.Table, snapshot: Snapshot) -> pa.Table:
    """Each event once, and none that bronze holds. Only files whose seqs overlap are looked into."""
    events = events.select(EVENTS.names).cast(EVENTS)
    if not events.num_rows:
        return events
    _, first = np.unique(events["seq"].to_numpy(), return_index=True)
    events = events.take(pa.array(first))
    low, high = events["seq"][0].as_py(), events["seq"][-1].as_py()
    files = [file for file in snapshot.files if file.may_hold("seq", low, high)]
    if not files:
        return events
    held = snapshot.read(["seq"], where=pc.field("seq") >= low, files=files)["seq"]
    return events.filter(pc.invert(pc.is_in(events["seq"], held.combine_chunks())))
