"""From the store's log into bronze and silver: the stream, and what becomes of each of its batches."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from headrace.spark.datasource import FORMAT
from headrace.spark.lake.bronze import BATCH, Bronze, last_cursor
from headrace.spark.lake.home import Home, Identity
from headrace.spark.lake.silver import Silver
from headrace.spark.lake.store import Store
from headrace.spark.lake.telling import Step, Tell

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

BATCH_EVENTS = 400_000
"""Events that the driver takes at once: some 200 MB in its memory."""


class Intake:
    """Takes batches of events in. Each step is known by its mark, so a batch told twice changes nothing."""

    def __init__(
        self, lake: Path, home: Home, store: Store, identity: Identity, tell: Tell
    ) -> None:
        self.bronze = Bronze(lake)
        self.silver = Silver(lake)
        self.calm = threading.Lock()
        """Held while a batch is taken in: bronze, silver and the cursor do not agree then."""
        self.failure: BaseException | None = None
        """Why a batch was not taken in: Spark would tell it wrapped in its own errors."""
        self.events = 0
        self.folds = True
        """False: silver is left behind for now, since it will be computed anew from all of bronze."""
        self._home = home
        self._store = store
        self._identity = identity
        self._label = str(lake)
        self._tell = tell
        self._way = Way(0)

    def prepare(self) -> None:
        """Make the tables, or bring them up to date. Raises LakeTooNew."""
        for folder in (self.bronze.folder, self.silver.attempts, self.silver.jobs):
            folder.prepare()

    def take(self, events: pa.Table, stream: str, stream_batch: int) -> None:
        """Bronze first, then whatever silver lacks of it. Then the store may forget these events."""
        with self.calm:
            self.events += self.bronze.append(events, stream, stream_batch)
            place = self._way.at(events)
            self._tell(Step(doing="events taken in", done=self.events, place=place))
            self.catch_up()
            if not events.num_rows:
                return
            cursor = last_cursor(events)
            self._home.note(cursor=cursor)
        self._store.reached(self._identity.lake_id, cursor, self._label)

    def catch_up(self) -> None:
        """Take into silver the batches that bronze has and silver has not."""
        if not self.folds:
            return
        held = self.bronze.folder.snapshot()
        for number in range(self.silver.jobs.snapshot().mark(BATCH) + 1, held.mark(BATCH) + 1):
            events = self.bronze.batch(held, number)
            plan = self.silver.plan(events)
            self._home.touch(number, plan.since, int(events["seq"].to_numpy().min()))
            self.silver.take(plan, number)

    # --- the stream ------------------------------------------------------------------------------

    def stream(
        self, spark: SparkSession, url: str, *, every_seconds: float | None, batch_events: int
    ) -> StreamingQuery:
        """Start reading the log: what is there now, or (with `every_seconds`) until it is stopped."""
        checkpoint = self._home.path / self._home.state().checkpoint
        self._tell(Step(doing="events are read"))
        self._way = Way(_seq(self._store.tail()))

        def taken(frame: DataFrame, number: int) -> None:
            try:
                self.take(frame.toArrow(), _stream_id(checkpoint), number)
            except BaseException as error:
                self.failure = error
                raise

        reading = (
            spark.readStream.format(FORMAT)
            .option("url", url)
            .option("table", "events")
            .option("maxRowsPerBatch", str(batch_events))
            .load()
        )
        writing = (
            reading.writeStream.foreachBatch(taken)
            .queryName("headrace pipeline")
            .option("checkpointLocation", str(checkpoint))
        )
        if every_seconds is None:
            return writing.trigger(availableNow=True).start()
        return writing.trigger(processingTime=f"{every_seconds} seconds").start()


class Way:
    """How far along the log a stream is, from its first event to what was the end when it began.

    By the numbers of the events, which every store gives in a row but for a few: how many events wait, not
    every store can say without counting them.
    """

    def __init__(self, end: int) -> None:
        self._end = end
        self._start: int | None = None

    def at(self, events: pa.Table) -> float | None:
        """With these taken in, 0 to 1. None: they came after what was the end."""
        if not events.num_rows:
            return None
        seqs = pc.min_max(events["seq"]).as_py()
        if self._start is None:
            self._start = seqs["min"] - 1
        if seqs["min"] > self._end:
            return None
        place = (seqs["max"] - self._start) / (self._end - self._start)
        return float(min(max(place, 0.0), 1.0))


def _seq(cursor: str) -> int:
    return int(cursor.rpartition(":")[2] or 0)


def _stream_id(checkpoint: Path) -> str:
    """Spark names each checkpoint when it is made: its batches are numbered within it."""
    known: str = json.loads((checkpoint / "metadata").read_text())["id"]
    return f"stream {known}"
