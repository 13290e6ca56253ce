"""The pipeline: a store's event log into a lake of Delta tables, incrementally and exactly once.

```python
from headrace.spark import pipeline

summary = pipeline.run("sqlite:///jobs.db", "lake")
```

Whatever ends a run, the next one goes on from where it was: every table is then as if nothing had happened.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pyspark.errors import StreamingQueryException

from headrace.spark.lake import upkeep
from headrace.spark.lake.bronze import BATCH, Bronze
from headrace.spark.lake.home import Home
from headrace.spark.lake.intake import BATCH_EVENTS
from headrace.spark.lake.runner import Sessions, Summary, opened
from headrace.spark.lake.silver import Silver
from headrace.spark.lake.store import Store
from headrace.spark.lake.table import Table
from headrace.spark.lake.telling import Step, Tell

__all__ = ["Status", "Step", "Summary", "compact", "follow", "run", "status"]

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
) -> Summary:
    """Bring the lake up to what the store's log holds now, check it, and say what was done.

    `full`: read the whole log again and compute silver and gold anew, from bronze, which keeps what the
    store has trimmed. `full_check`: check everything, not only what this run brought. `tables`: only these
    of gold; the others stay as they are, until a run that names them makes up for what they missed. `tell`
    is told each step, and how far it is.

    Raises LakeBusy, OtherStore, LakeTooNew, LogBroken, ChecksFailed.
    """
    with opened(url, Path(lake), spark, tell, tables) as work:
        work.start(anew=full)
        if full:
            work.begin_anew()
        work.take_in(batch_events)
        if full:
            work.rebuild()
        work.refresh(everything=full)
        checks = work.check(everything=full or full_check)
        work.finish()
        return work.summary(checks)


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
) -> Generator[Summary]:
    """Keep the lake up to date until the iterator is closed; one summary per time that gold was.

    Bronze and silver follow the log every so many seconds; gold and the checks come behind, as fast as they
    can. `tables`: only these of gold. `until`: set it to end in good order. Raises what `run` raises.
    """
    with opened(url, Path(lake), spark, tell, tables) as work:
        work.start()
        query = work.stream(every_seconds, batch_events)
        try:
            while query.isActive and not (until is not None and until.is_set()):
                ended = query.awaitTermination(1)
                work.stay_known()
                state = work.home.state()
                if state.touched or state.unchecked:
                    work.refresh(everything=False)
                    checks = work.check(everything=False)
                    work.finish()
                    yield work.summary(checks)
                if ended:
                    break
        except StreamingQueryException as error:
            work.raise_failure(error)
        finally:
            query.stop()
        work.raise_failure(query.exception())


def status(lake: str | Path, url: str | None = None) -> Status:
    """Where the lake stands, without Spark; with a url, where the store's log ends. Raises NoLake."""
    path = Path(lake)
    home = Home(path)
    identity, state = home.identity(), home.state()
    tail: str | None = None
    if url is not None:
        with Store(url) as store:
            home.check_for(store.known_id())
            tail = store.tail()
    bronze, silver = Bronze(path), Silver(path)
    behind = 0
    if bronze.folder.exists and silver.jobs.exists:
        behind = bronze.folder.snapshot().mark(BATCH) - silver.jobs.snapshot().mark(BATCH)
    return Status(
        lake=str(path),
        lake_id=identity.lake_id,
        cursor=state.cursor,
        store_tail=tail,
        pending=behind + len(state.touched),
        ran_at=state.ran_at,
        runs=state.runs,
        tables=tuple(upkeep.sizes(path)),
    )


def compact(lake: str | Path, *, keep_hours: float = upkeep.KEEP_HOURS) -> upkeep.Compacted:
    """Join small files, and delete those that no version of the last `keep_hours` needs. Raises LakeBusy."""
    home = Home(Path(lake))
    home.identity()
    with home.locked():
        done = upkeep.compact(Path(lake))
        removed = upkeep.vacuum(Path(lake), keep_hours)
        return done._replace(removed=removed)
