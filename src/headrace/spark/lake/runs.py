"""The lake's own history: one row per run of the pipeline, and what is left to do."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from headrace.spark.lake.delta import Folder
from headrace.spark.lake.storage import Storage
from headrace.spark.lake.table import Table, columns_of, folder_of
from headrace.spark.schemas import TIME

SCHEMA = pa.schema(
    [
        pa.field("run", pa.int64()),
        pa.field("ended_at", TIME),
        pa.field("seconds", pa.float64()),
        pa.field("events", pa.int64()),
        pa.field("batch", pa.int64()),
        pa.field("cursor", pa.string()),
        pa.field("checks", pa.int32()),
        pa.field("steps", pa.map_(pa.string(), pa.float64())),
        pa.field("host", pa.string()),
        pa.field("headrace", pa.string()),
    ]
)

RUNS_TABLE = Table(
    name="meta/runs",
    grain="One row per run of the pipeline, or per time that a following one brought gold up to date.",
    key=("run",),
    columns=columns_of(
        SCHEMA,
        {
            "run": "The number of the run; the first is 1.",
            "ended_at": "When it ended.",
            "seconds": "How long it took.",
            "events": "Events that it took in.",
            "batch": "The batch up to which every table was computed.",
            "cursor": "Where the log was read to.",
            "checks": "How many checks passed; 0 where there was nothing to check.",
            "steps": "Seconds by step.",
            "host": "The machine of its driver.",
            "headrace": "The version of Headrace.",
        },
    ),
    partition_by=(),
)


class Runs:
    """The table, and the note of what has been done up to which batch."""

    def __init__(self, lake: Storage) -> None:
        self.folder: Folder = folder_of(lake, RUNS_TABLE, SCHEMA)

    def prepare(self) -> None:
        self.folder.prepare()

    @property
    def exists(self) -> bool:
        return self.folder.exists

    def note(self) -> Mapping[str, Any]:
        """`runs`, `ran_at`, `refreshed` and `checked` (batches), `checked_cursor`, `compacted_at_run`."""
        return self.folder.snapshot().note if self.exists else {}

    def ended(self, row: Mapping[str, Any], **changes: object) -> None:
        base = self.folder.snapshot()
        number = int(base.note.get("runs", 0)) + 1
        now = datetime.now(UTC)
        told = pa.Table.from_pylist([{**row, "run": number, "ended_at": now}], schema=SCHEMA)
        note = {**base.note, **changes, "runs": number, "ran_at": now.isoformat()}
        self.folder.commit(base, self.folder.write(told), note=note)
