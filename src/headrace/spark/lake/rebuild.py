"""Silver computed anew from all of bronze, in Spark's tasks, and swapped in with one commit per table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
from deltalake.transaction import AddAction

from headrace.spark import folding
from headrace.spark.lake.bronze import BATCH, EVENTS_TABLE, Bronze
from headrace.spark.lake.delta import Folder
from headrace.spark.lake.home import LakeUnusable
from headrace.spark.lake.silver import Silver, attempt_rows, job_rows
from headrace.spark.lake.views import frame_of
from headrace.spark.schemas import EVENTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS_PER_TASK = 500_000

_WRITTEN = "table string, action string"


def rebuild(spark: SparkSession, bronze: Bronze, silver: Silver) -> None:
    """Fold all events of bronze again: silver is at bronze's batch then.

    Every task folds the jobs of its share and writes their files. Readers see the old rows until the
    commit, and the new ones from it on. A crash before leaves the old; between the two tables, one of each,
    both of them right.
    """
    bases = {
        (silver.attempts, "attempts"): silver.attempts.snapshot(),
        (silver.jobs, "jobs"): silver.jobs.snapshot(),
    }
    snapshot = bronze.folder.snapshot()
    batch = snapshot.mark(BATCH)
    events = frame_of(spark, EVENTS_TABLE, snapshot).select(*(f"`{name}`" for name in EVENTS.names))
    shares = max(1, -(-snapshot.rows // EVENTS_PER_TASK))
    written = (
        events.repartition(shares, "job_id")
        .mapInArrow(_folding(silver.jobs, silver.attempts), _WRITTEN)
        .collect()
    )
    for (folder, name), base in bases.items():
        actions = [
            AddAction(**msgspec.json.decode(row.action)) for row in written if row.table == name
        ]
        _check_seen(folder, actions)
        folder.commit(base, actions, base.files, marks={BATCH: batch})


def _check_seen(folder: Folder, actions: Sequence[AddAction]) -> None:
    """What tasks wrote where the driver cannot see it must not join a table: no reader could open it."""
    for action in actions:
        if not (folder.path / action.path).is_file():
            raise LakeUnusable(
                f"{folder.path / action.path}, which a task has written, is not there for the driver; "
                "nothing was changed. The lake must lie in a folder that all hosts of the cluster share"
            )


def _folding(
    jobs: Folder, attempts: Folder
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def fold_share(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        share = list(batches)
        if not share:
            return
        folded = folding.fold(pa.Table.from_batches(share).cast(EVENTS))
        files = [
            *(("jobs", action) for action in jobs.write(job_rows(folded.jobs))),
            *(("attempts", action) for action in attempts.write(attempt_rows(folded.attempts))),
        ]
        yield pa.RecordBatch.from_pydict(
            {
                "table": [name for name, _ in files],
                "action": [msgspec.json.encode(asdict(action)).decode() for _, action in files],
            },
            schema=pa.schema([("table", pa.string()), ("action", pa.string())]),
        )

    return fold_share
