"""The pipeline: a store's event log into a lake of Delta tables, incrementally and exactly once.

```python
from headrace.spark import pipeline

summary = pipeline.run("sqlite:///jobs.db", "lake")
```

Whatever ends a run, the next one goes on from where it was: every table is then as if nothing had happened.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from headrace.spark.lake import upgrade as upgrading
from headrace.spark.lake import upkeep
from headrace.spark.lake.bronze import BATCH, bronze_of, events_of
from headrace.spark.lake.home import Home
from headrace.spark.lake.log import BATCH_EVENTS
from headrace.spark.lake.run import Sessions, Summary, opened
from headrace.spark.lake.runs import Runs
from headrace.spark.lake.silver import JOBS_TABLE, silver_of
from headrace.spark.lake.step import Step, Tell
from headrace.spark.lake.storage import storage_of
from headrace.spark.lake.store import Store
from headrace.spark.lake.table import Table
from headrace.spark.lake.tasks import SparkTasks
from headrace.spark.session import session

__all__ = ["Status", "Step", "Summary", "compact", "follow", "history", "run", "status", "upgrade"]

FOLLOW_SECONDS = 10.0


@dataclass(frozen=True)
class Status:
    """Where a lake stands."""

    lake: str
    lake_id: str
    cursor: str
    store_tail: str | None
    """The end of the store's log; None if no url was given."""
    pending: int
    """Batches that bronze has and silver has not, and those that gold has not."""
    ran_at: datetime | None
    runs: int
    tables: tuple[upkeep.Size, ...]


def run(
    url: str,
    lake: str | Path,
    *,
    spark: Sessions = None,
    full: bool = False,
    full_check: bool = False,
    batch_events: int = BATCH_EVENTS,
    tell: Tell | None = None,
    tables: Sequence[Table] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Summary:
    """Bring the lake up to what the store's log holds now, check it, and say what was done.

    `lake`: a path, or a url such as s3://bucket/lake, with `storage_options` for what the environment does
    not say. `full`: read the whole log again and compute silver and gold anew, from bronze, which keeps what
    the store has trimmed. `full_check`: check everything, not only what this run brought. `tables`: only
    these of gold; the others stay as they are, until a run that names them makes up for what they missed.
    `tell` is told each step, and how far it is.

    Raises LakeBusy, OtherStore, LakeTooOld, LakeTooNew, LogBroken, ChecksFailed.
    """
    with opened(
        url, lake, spark, tell=tell, tables=tables, storage_options=storage_options
    ) as work:
        work.start(anew=full)
        work.take_in(batch_events, anew=full)
        if full:
            work.rebuild()
        work.refresh(everything=full)
        return work.finish(work.check(everything=full or full_check))


def follow(
    url: str,
    lake: str | Path,
    *,
    spark: Sessions = None,
    every_seconds: float = FOLLOW_SECONDS,
    batch_events: int = BATCH_EVENTS,
    tell: Tell | None = None,
    tables: Sequence[Table] | None = None,
    until: threading.Event | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Generator[Summary]:
    """Keep the lake up to date until the iterator is closed; one summary per time that gold was.

    The log is read every so many seconds, or as often as a round takes. `tables`: only these of gold.
    `until`: set it to end in good order. Raises what `run` raises.
    """
    told = until or threading.Event()
    tell = tell or (lambda _step: None)
    with opened(
        url, lake, spark, tell=tell, tables=tables, storage_options=storage_options
    ) as work:
        work.start()
        due = time.monotonic()
        first = True
        while not told.is_set():
            if work.take_in(batch_events) or first:
                first = False
                work.refresh(everything=False)
                checks = work.check(everything=False)
                done = work.finish(checks)
                if done.events or done.since or checks:
                    yield done
                tell(Step(doing="up to date, following the log"))
            work.stay_known()
            due = max(due + every_seconds, time.monotonic())
            told.wait(due - time.monotonic())


def status(
    lake: str | Path,
    url: str | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> Status:
    """Where the lake stands, without Spark; with a url, where the store's log ends. Raises NoLake."""
    storage = storage_of(lake, storage_options)
    home = Home(storage)
    identity = home.identity()
    tail: str | None = None
    if url is not None:
        with Store(url) as store:
            home.check_for(store.known_id())
            tail = store.tail()
    bronze, jobs = bronze_of(storage).snapshot(), silver_of(storage, JOBS_TABLE)
    folded = jobs.snapshot().mark(BATCH) if jobs.exists else -1
    note = Runs(storage).note()
    return Status(
        lake=str(lake),
        lake_id=identity.lake_id,
        cursor=home.cursor(),
        store_tail=tail,
        pending=bronze.mark(BATCH) - folded + max(folded - int(note.get("refreshed", -1)), 0),
        ran_at=datetime.fromisoformat(note["ran_at"]) if "ran_at" in note else None,
        runs=int(note.get("runs", 0)),
        tables=tuple(upkeep.sizes(storage)),
    )


def compact(
    lake: str | Path,
    *,
    keep_hours: float = upkeep.KEEP_HOURS,
    storage_options: Mapping[str, str] | None = None,
) -> upkeep.Compacted:
    """Join small files, and delete those that no version of the last `keep_hours` needs. Raises LakeBusy."""
    storage = storage_of(lake, storage_options)
    home = Home(storage)
    home.identity()
    with home.locked():
        done = upkeep.compact(storage)
        return done._replace(removed=upkeep.vacuum(storage, keep_hours))


def history(
    lake: str | Path, job_id: str, *, storage_options: Mapping[str, str] | None = None
) -> pa.Table:
    """All events of a job that the lake holds, in order, as Arrow; without Spark. Raises NoLake."""
    storage = storage_of(lake, storage_options)
    Home(storage).identity()
    return events_of(storage, job_id)


def upgrade(lake: str | Path, *, spark: Sessions = None, tell: Tell | None = None) -> int:
    """Make a lake of format 1, of an earlier Headrace, one of this; how many events it holds.

    From its own events: no store is asked. The next run computes gold. The tables of before stay in
    `_headrace/format-1`. Raises NoLake if there is none of format 1, LakeBusy.
    """
    storage = storage_of(lake)
    with Home(storage).locked():
        upgrading.check_old(storage)
        if tell is not None:
            tell(Step(doing="all events are read again"))
        made = session(spark() if callable(spark) else spark)
        tasks = SparkTasks(made, made.sparkContext.defaultParallelism)
        return upgrading.upgrade(storage, tasks)
