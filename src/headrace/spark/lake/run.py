"""One run of the pipeline, step by step."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from headrace.errors import InvalidInput
from headrace.spark.lake import checks, gold, hours, reconciliation, upkeep
from headrace.spark.lake.bronze import BATCH, EVENTS_TABLE
from headrace.spark.lake.checks import Checked, ChecksFailed
from headrace.spark.lake.continuity import check_continuity
from headrace.spark.lake.delta import Snapshot
from headrace.spark.lake.home import Home, Identity, NoLake
from headrace.spark.lake.intake import Intake
from headrace.spark.lake.lock import Lock
from headrace.spark.lake.log import Log
from headrace.spark.lake.refresh import Gold, SilverFrames, session_for
from headrace.spark.lake.runs import Runs
from headrace.spark.lake.silver import JOBS_TABLE, SILVER
from headrace.spark.lake.step import Step, Tell
from headrace.spark.lake.storage import Storage, storage_of
from headrace.spark.lake.store import Store
from headrace.spark.lake.table import Table
from headrace.spark.lake.tasks import SparkTasks
from headrace.spark.lake.views import frame_of
from headrace.spark.session import is_remote, session
from headrace.version import VERSION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Sessions: TypeAlias = "SparkSession | Callable[[], SparkSession] | None"
"""A session, a function that makes one once it is needed, or None: one with our defaults."""

REPORT_SECONDS = 3600.0


@dataclass(frozen=True)
class Summary:
    """What a run did."""

    lake: str
    events: int
    """Taken into bronze."""
    since: datetime | None
    """The first hour of gold that was computed anew, the beginning of 1970 for all; None if none was."""
    checks: int
    cursor: str
    seconds: dict[str, float] = field(default_factory=dict)
    """Per step."""
    tables: tuple[upkeep.Size, ...] = ()


@contextlib.contextmanager
def opened(
    url: str,
    lake: str | Path,
    spark: Sessions,
    *,
    tell: Tell | None = None,
    tables: Sequence[Table] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Iterator[Run]:
    """A run on the lake, which is locked while the block lasts. `tables`: only these of gold.

    Store and lake are looked at before Spark is started: what is wrong with them is told at once.
    Raises LakeBusy, OtherStore, LakeTooOld, InvalidInput for a Spark Connect session.
    """
    if spark is not None and not callable(spark):
        _check_classic(spark)
    storage = storage_of(lake, storage_options)
    home = Home(storage)
    with Store(url) as store, home.locked():
        with contextlib.suppress(NoLake):
            home.check_for(store.known_id())  # before the store is given an identity
        identity = home.claim_for(store.id())
        lock = Lock(store, storage, identity.lake_id)
        with lock.held():
            yield Run(
                url=url,
                home=home,
                store=store,
                lock=lock,
                identity=identity,
                spark=session(spark() if callable(spark) else spark),
                tell=tell or (lambda _step: None),
                tables=gold.of_lake(storage) if tables is None else tables,
            )


def _check_classic(spark: SparkSession) -> None:
    if is_remote(spark):
        raise InvalidInput(
            "the pipeline sets up sessions of its own beside the given one, which a Spark Connect session "
            "cannot have; nothing was changed. Leave the session out, or give one with a master"
        )


class Run:
    """One run, step by step."""

    def __init__(
        self,
        *,
        url: str,
        home: Home,
        store: Store,
        lock: Lock,
        identity: Identity,
        spark: SparkSession,
        tell: Tell,
        tables: Sequence[Table],
    ) -> None:
        self.home = home
        self.lake: Storage = home.lake
        self._url = url
        self._store = store
        self._lock = lock
        self._spark = spark
        self._tell = tell
        self._tasks = SparkTasks(spark, spark.sparkContext.defaultParallelism)
        self._log = Log(url, self._tasks)
        self._intake = Intake(home.lake, self._tasks)
        self._gold = Gold(home.lake, tables)
        self._runs = Runs(home.lake)
        self._identity = identity
        self._seconds: dict[str, float] = {}
        self._events = 0
        self._since: datetime | None = None
        self._checked: dict[str, object] = {}
        self._heard_at = time.monotonic()
        if not home.cursor():
            # From now on the store keeps what the lake has not read.
            self._report()

    # --- the steps -------------------------------------------------------------------------------

    def start(self, *, anew: bool = False) -> None:
        """Make the tables, and take into silver what a crash left undone.

        `anew`: the log will be read from its beginning, and silver computed from all of bronze after that:
        until then nothing is folded. Raises LogBroken, LakeTooNew.
        """
        with self._timed("prepare"):
            self._intake.prepare()
            self._runs.prepare()
            self._check_log(anew=anew)
            if not anew:
                self._intake.catch_up()

    def take_in(self, batch_events: int, *, anew: bool = False) -> int:
        """What the log holds now, batch by batch; how many new events that were.

        `anew`: from its beginning, and into bronze only. What bronze holds already is known by its seq.
        """
        cursor = "" if anew else self.home.cursor()
        if not anew and cursor == self._store.tail():
            return 0
        before = self._events
        with self._timed("bronze and silver"):
            self._tell(Step(doing="events are read"))
            way: Way | None = None
            while True:
                self._lock.check()
                planned = self._log.plan(cursor, batch_events)
                way = way or Way(_seq(cursor), _seq(planned.log_end))
                for slices in planned.batches:
                    self._lock.check()
                    taken = self._intake.append(
                        slices, self._log.read, further=self._log.further, fence=self._lock.fence
                    )
                    self._events += taken.events
                    place = way.at(taken.cursor)
                    self._tell(Step(doing="events taken in", done=self._events, place=place))
                    if not anew:
                        self._intake.catch_up()
                    self._report()
                cursor = planned.end
                if planned.end == planned.log_end or not planned.batches:
                    return self._events - before

    def _check_log(self, *, anew: bool = False) -> None:
        note = self._intake.bronze.snapshot().note
        check_continuity(self._store, note, str(self.lake), anew=anew)

    def rebuild(self) -> None:
        with self._timed("rebuild"):
            self._tell(Step(doing="silver is computed anew"))
            self._lock.check()
            self._intake.rebuild()

    def refresh(self, *, everything: bool) -> None:
        """Compute the hours of gold that have changed since it was last."""
        with self._timed("gold"):
            silver = {table: folder.snapshot() for table, folder in self._intake.silver.items()}
            batch = silver[JOBS_TABLE].mark(BATCH)
            due = self._gold.due(silver, batch, everything=everything)
            if not due:
                return

            def told(done: int) -> None:
                self._tell(Step(doing="gold tables computed", done=done, total=len(due)))

            told(0)
            self._lock.check()
            spark = session_for(self._spark, silver[JOBS_TABLE].rows)
            frames = SilverFrames(spark, silver, self._tasks.parallelism)
            self._gold.refresh(frames, due, batch, told)
            self._since = min(hours.BEGINNING if one is None else one.first for one in due.values())

    def check(self, *, everything: bool) -> int:
        """How many checks have passed. Raises ChecksFailed.

        What a run before this one has not checked, or not with success, is looked at, too.
        """
        tables = self._tables()
        batch = tables[EVENTS_TABLE].mark(BATCH)
        known = self._runs.note()
        if not everything and known.get("checked", -1) >= batch:
            return 0
        with self._timed("checks"):
            free = self._tell_check("the ledgers are compared", lambda: self._free(tables))
            note = tables[EVENTS_TABLE].note
            cheap = self._tell_check(
                "the lake is compared with the store", lambda: self._against_store(tables, known)
            )
            found = checks.together(free, cheap)
            if everything:
                found = checks.together(found, self._all(tables))
            if found.failed:
                raise ChecksFailed(found.failed, str(self.lake))
            self._checked = {
                "checked": batch,
                "checked_cursor": note.get("cursor", ""),
                "checked_ledger": note.get("ledger", {}),
            }
            return found.made

    def _tell_check(self, doing: str, check: Callable[[], Checked]) -> Checked:
        self._tell(Step(doing=doing))
        return check()

    def _free(self, tables: Mapping[Table, Snapshot]) -> Checked:
        return checks.together(
            checks.check_ledgers(tables),
            checks.check_gaps(tables),
            checks.check_totals(self._tasks, tables),
        )

    def _against_store(
        self, tables: Mapping[Table, Snapshot], known: Mapping[str, object]
    ) -> Checked:
        note = tables[EVENTS_TABLE].note
        ledger = note.get("ledger", {})
        before = known.get("checked_ledger") or {}
        assert isinstance(before, Mapping)
        after, upto = str(known.get("checked_cursor", "")), str(note.get("cursor", ""))
        found = [Checked(0, ())]
        if upto and after != upto:
            counted = reconciliation.count_log(self._tasks, self._url, after, upto)
            events, seqs = (
                ledger.get(name, 0) - before.get(name, 0) for name in ("events", "seqs")
            )
            if (counted.events, counted.seqs) == (events, seqs):
                found.append(Checked(1, ()))
            else:
                # Some were trimmed meanwhile, or came by another way: look at each.
                found.append(
                    reconciliation.missing_events(
                        self._tasks, self._url, after, upto, tables[EVENTS_TABLE]
                    )
                )
        seq = 0
        if after:
            changed = [file for file in tables[EVENTS_TABLE].files if _is_new(file.high, known)]
            seq = min((file.low.get("seq", 0) for file in changed), default=0)
        found.append(
            reconciliation.sample_disagreements(self._tasks, self._url, tables[JOBS_TABLE], seq)
        )
        return checks.together(*found)

    def _all(self, tables: Mapping[Table, Snapshot]) -> Checked:
        spark = session_for(self._spark, tables[JOBS_TABLE].rows)
        for table, snapshot in tables.items():
            frame_of(spark, table, snapshot).createOrReplaceTempView(table.view)

        def told(done: int, total: int) -> None:
            self._tell(Step(doing="checks run", done=done, total=total))

        bronze = tables[EVENTS_TABLE]
        return checks.together(
            checks.audit(spark, list(tables), told),
            reconciliation.missing_events(
                self._tasks, self._url, "", bronze.note.get("cursor", ""), bronze
            ),
            reconciliation.all_disagreements(spark, self._url),
        )

    def _tables(self) -> dict[Table, Snapshot]:
        return {
            EVENTS_TABLE: self._intake.bronze.snapshot(),
            **{table: self._intake.silver[table].snapshot() for table in SILVER},
            **{table: self._gold.folder(table).snapshot() for table in self._gold.tables},
        }

    # --- what the store is told, and what the lake notes -------------------------------------------

    def stay_known(self) -> None:
        """While nothing happens, tell the store now and then that the lake still reads its log."""
        self._lock.check()
        if time.monotonic() - self._heard_at > REPORT_SECONDS:
            self._report()

    def _report(self) -> None:
        """Up to here the lake holds the log: it may be trimmed so far."""
        self._heard_at = time.monotonic()
        self._store.reached(self._identity.lake_id, self.home.cursor(), str(self.lake))

    def finish(self, checks: int) -> Summary:
        """Note the run, and tidy up now and then."""
        # A run that died may not have told how far it came, and one without news has told nothing.
        self._report()
        note = self._runs.note()
        runs = int(note.get("runs", 0)) + 1
        more: dict[str, object] = {}
        if runs - int(note.get("compacted_at_run", 0)) >= upkeep.EVERY_RUNS:
            with self._timed("compaction"):
                upkeep.compact(self.lake, self._tasks)
                upkeep.vacuum(self.lake, upkeep.KEEP_HOURS)
                more["compacted_at_run"] = runs
        batch = self._intake.silver[JOBS_TABLE].snapshot().mark(BATCH)
        seconds = {name: round(spent, 2) for name, spent in self._seconds.items()}
        row = {
            "seconds": sum(seconds.values()),
            "events": self._events,
            "batch": batch,
            "cursor": self.home.cursor(),
            "checks": checks,
            "steps": list(seconds.items()),
            "host": socket.gethostname(),
            "headrace": VERSION,
        }
        self._runs.ended(row, refreshed=batch, **self._checked, **more)
        summary = Summary(
            lake=str(self.lake),
            events=self._events,
            since=self._since,
            checks=checks,
            cursor=self.home.cursor(),
            seconds=seconds,
            tables=tuple(upkeep.sizes(self.lake)),
        )
        self._events, self._since, self._seconds, self._checked = 0, None, {}, {}
        return summary

    @contextlib.contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        start = time.monotonic()
        self._spark.sparkContext.setJobDescription(f"headrace: {step}")
        try:
            yield
        finally:
            self._spark.sparkContext.setJobDescription("")
            self._seconds[step] = self._seconds.get(step, 0.0) + time.monotonic() - start


class Way:
    """How far along the log a run is, from where it began to what was the end then.

    By the numbers of the events, which every store gives in a row but for a few: how many events wait, not
    every store can say without counting them.
    """

    def __init__(self, start: int, end: int) -> None:
        self._start = start
        self._end = end

    def at(self, cursor: str) -> float | None:
        """With the events up to this one taken in, 0 to 1. None: nobody knows."""
        if not cursor or self._end <= self._start:
            return None
        return min(max((_seq(cursor) - self._start) / (self._end - self._start), 0.0), 1.0)


def _seq(cursor: str) -> int:
    return int(cursor.rpartition(":")[2] or 0)


def _is_new(high: Mapping[str, object], known: Mapping[str, object]) -> bool:
    """Whether a file of bronze holds a batch that was not checked yet."""
    batch, checked = high.get("batch"), known.get("checked", -1)
    assert isinstance(checked, int)
    return not isinstance(batch, int) or batch > checked
