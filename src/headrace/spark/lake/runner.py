"""One run of the pipeline, step by step."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pyspark.errors import StreamingQueryException

from headrace.errors import InvalidInput
from headrace.spark.lake import gold, upkeep
from headrace.spark.lake.bronze import BATCH, EVENTS_TABLE
from headrace.spark.lake.checks import ChecksFailed, run_checks
from headrace.spark.lake.continuity import check_continuity
from headrace.spark.lake.delta import Folder, Snapshot
from headrace.spark.lake.golden import Gold, SilverFrames
from headrace.spark.lake.home import Home, Identity, NoLake, State
from headrace.spark.lake.intake import Intake
from headrace.spark.lake.quick import session_for
from headrace.spark.lake.rebuild import rebuild
from headrace.spark.lake.reconciliation import disagreements, missing_events
from headrace.spark.lake.silver import ATTEMPTS_TABLE, JOBS_TABLE
from headrace.spark.lake.store import Store
from headrace.spark.lake.table import Table
from headrace.spark.lake.telling import Step, Tell
from headrace.spark.lake.views import frame_of
from headrace.spark.session import is_remote, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Sessions: TypeAlias = "SparkSession | Callable[[], SparkSession] | None"
"""A session, a function that makes one once it is needed, or None: one with our defaults."""

LAYERS = (EVENTS_TABLE, ATTEMPTS_TABLE, JOBS_TABLE)
"""The tables that stand below gold."""
REPORT_SECONDS = 3600.0
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Summary:
    """What a run did."""

    lake: str
    events: int
    """Taken into bronze."""
    since: datetime | None
    """Gold was computed anew from this moment on; None if nothing was."""
    checks: int
    cursor: str
    seconds: dict[str, float] = field(default_factory=dict)
    """Per step."""
    tables: tuple[upkeep.Size, ...] = ()


@dataclass(frozen=True)
class Standing:
    """What stands below gold at one moment, all at the same batch.

    With --follow the next one may come while gold is computed from this, and checked against it.
    """

    snapshots: Mapping[Table, Snapshot]
    state: State

    @property
    def batch(self) -> int:
        return self.snapshots[JOBS_TABLE].mark(BATCH)


@contextlib.contextmanager
def opened(
    url: str,
    lake: Path,
    spark: Sessions,
    tell: Tell | None = None,
    tables: Sequence[Table] | None = None,
) -> Iterator[Work]:
    """A run on the lake, which is locked while the block lasts. `tables`: only these of gold.

    Store and lake are looked at before Spark is started: what is wrong with them is told at once.
    Raises LakeBusy, OtherStore, InvalidInput for a Spark Connect session.
    """
    if spark is not None and not callable(spark):
        _check_classic(spark)
    home = Home(Path(os.path.normpath(lake.absolute())))
    with Store(url) as store, home.locked():
        with contextlib.suppress(NoLake):
            home.check_for(store.known_id())  # before the store is given an identity
        identity = home.claim_for(store.id())
        yield Work(
            url=url,
            home=home,
            store=store,
            identity=identity,
            spark=session(spark() if callable(spark) else spark),
            tell=tell or (lambda _step: None),
            tables=gold.of_lake(home.lake) if tables is None else tables,
        )


def _check_classic(spark: SparkSession) -> None:
    if is_remote(spark):
        raise InvalidInput(
            "the pipeline keeps the lake from the process that it runs in, and the driver of a Spark Connect "
            "session is another; nothing was changed. Leave the session out, or give one with a master"
        )


class Work:
    """One run, step by step."""

    def __init__(
        self,
        *,
        url: str,
        home: Home,
        store: Store,
        identity: Identity,
        spark: SparkSession,
        tell: Tell,
        tables: Sequence[Table],
    ) -> None:
        self.home = home
        self._url = url
        self._store = store
        self._spark = spark
        self._tell = tell
        self._intake = Intake(home.lake, home, store, identity, tell)
        self._gold = Gold(home.lake, tables)
        self._seconds: dict[str, float] = {}
        self._since: datetime | None = None
        self._standing: Standing | None = None
        self._told_events = 0
        self._identity = identity
        self._heard_at = time.monotonic()
        if not home.state().cursor:
            # From now on the store keeps what the lake has not read.
            self._report()

    def start(self, *, anew: bool = False) -> None:
        """Make the tables, and take into silver what a crash left undone.

        `anew`: the log will be read from its beginning, and silver computed from all of bronze after that:
        until then nothing is folded. Raises LogBroken, LakeTooNew.
        """
        with self._timed("prepare"):
            self._intake.folds = not anew
            self._intake.prepare()
            self._check_log(anew=anew)
            self._intake.catch_up()

    def begin_anew(self) -> None:
        """Forget how far the log was read: what bronze holds already is known by its seq."""
        self.home.note(checkpoint=f"checkpoint-{int(time.time() * 1000)}")

    def take_in(self, batch_events: int) -> None:
        with self._timed("bronze and silver"):
            query = self.stream(None, batch_events)
            try:
                query.awaitTermination()
            except StreamingQueryException as error:
                self.raise_failure(error)
            except BaseException:
                query.stop()
                raise
            self.raise_failure(query.exception())

    def stream(self, every_seconds: float | None, batch_events: int) -> StreamingQuery:
        return self._intake.stream(
            self._spark, self._url, every_seconds=every_seconds, batch_events=batch_events
        )

    def raise_failure(self, error: BaseException | None) -> None:
        """The error that ended the stream, as it was before Spark wrapped it."""
        if self._intake.failure is not None:
            raise self._intake.failure
        if error is not None:
            self._check_log()
            raise error

    def _check_log(self, *, anew: bool = False) -> None:
        check_continuity(
            self._store,
            self.home.state().cursor,
            self._intake.bronze.folder.snapshot(),
            str(self.home.lake),
            anew=anew,
        )

    def rebuild(self) -> None:
        with self._timed("rebuild"):
            self._tell(Step(doing="silver is computed anew"))
            # First: whatever ends this, gold is computed from the new silver, and both are checked.
            self.home.touch(self._intake.bronze.folder.snapshot().mark(BATCH), _BEGINNING, 0)
            rebuild(self._spark, self._intake.bronze, self._intake.silver)
            self._intake.folds = True

    def refresh(self, *, everything: bool) -> None:
        """Compute gold from the first moment that changed since it was last."""
        with self._timed("gold"):
            self._gold.mend_statistics()
            self._standing = standing = self._look()
            batch = standing.batch
            touched = {n: since for n, since in standing.state.touched.items() if n <= batch}
            starts = self._gold.starts(touched, batch, everything=everything)
            if not starts:
                return

            def told(done: int) -> None:
                self._tell(Step(doing="gold tables computed", done=done, total=len(starts)))

            told(0)
            jobs = standing.snapshots[JOBS_TABLE]
            spark = session_for(self._spark, jobs.rows)
            self._gold.refresh(
                SilverFrames(spark, jobs, standing.snapshots[ATTEMPTS_TABLE]),
                starts,
                batch,
                told,
            )
            self.home.settled(batch)
            self._since = min(since or _BEGINNING for since in starts.values())

    def _look(self) -> Standing:
        with self._intake.calm:
            return Standing(
                {table: self._folder(table).snapshot() for table in LAYERS}, self.home.state()
            )

    def check(self, *, everything: bool) -> int:
        """How many checks of what gold was last computed from have passed. Raises ChecksFailed.

        What a run before this one has not checked, or not with success, is looked at, too.
        """
        standing = self._standing or self._look()
        unchecked = [seq for n, seq in standing.state.unchecked.items() if n <= standing.batch]
        if not (unchecked or everything):
            return 0
        least = 0 if everything else min(unchecked)
        with self._timed("checks"):

            def told(done: int, total: int) -> None:
                self._tell(Step(doing="checks run", done=done, total=total))

            of_gold = {table: self._gold.folder(table).snapshot() for table in self._gold.tables}
            snapshots = {**standing.snapshots, **of_gold}
            spark = session_for(self._spark, snapshots[JOBS_TABLE].rows)
            for table, snapshot in snapshots.items():
                frame_of(spark, table, snapshot).createOrReplaceTempView(table.view)
            count, failed = run_checks(spark, snapshots, least, told)
            self._tell(Step(doing="the lake is compared with the store"))
            failed += missing_events(
                spark,
                self._url,
                "" if everything else standing.state.checked_cursor,
                standing.state.cursor,
                snapshots[EVENTS_TABLE],
            )
            failed += disagreements(spark, self._url, self._store, least)
            if failed:
                raise ChecksFailed(failed, str(self.home.lake))
            self.home.checked(standing.batch, standing.state.cursor)
            return count + 2

    def stay_known(self) -> None:
        """While nothing happens, tell the store now and then that the lake still reads its log."""
        if time.monotonic() - self._heard_at > REPORT_SECONDS:
            self._report()

    def _report(self) -> None:
        self._heard_at = time.monotonic()
        with (
            self._intake.calm
        ):  # else a batch could come between, and the store hear of an older cursor
            cursor = self.home.state().cursor
            self._store.reached(self._identity.lake_id, cursor, str(self.home.lake))

    def finish(self) -> None:
        # A run that died may not have told how far it came, and one without news has told nothing.
        self._report()
        state = self.home.state()
        self.home.drop_old_checkpoints()
        self.home.note(ran_at=datetime.now(UTC), runs=state.runs + 1)
        if state.runs + 1 - state.compacted_at_run >= upkeep.EVERY_RUNS:
            with self._timed("compaction"), self._intake.calm:
                upkeep.compact(self.home.lake)
                upkeep.vacuum(self.home.lake, upkeep.KEEP_HOURS)
                self.home.note(compacted_at_run=state.runs + 1)

    def summary(self, checks: int) -> Summary:
        events = self._intake.events - self._told_events
        self._told_events += events
        seconds, self._seconds = self._seconds, {}
        since, self._since = self._since, None
        return Summary(
            lake=str(self.home.lake),
            events=events,
            since=since,
            checks=checks,
            cursor=self.home.state().cursor,
            seconds={name: round(spent, 2) for name, spent in seconds.items()},
            tables=tuple(upkeep.sizes(self.home.lake)),
        )

    def _folder(self, table: Table) -> Folder:
        return {
            EVENTS_TABLE.name: self._intake.bronze.folder,
            JOBS_TABLE.name: self._intake.silver.jobs,
            ATTEMPTS_TABLE.name: self._intake.silver.attempts,
        }[table.name]

    @contextlib.contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        start = time.monotonic()
        self._spark.sparkContext.setJobDescription(f"headrace: {step}")
        try:
            yield
        finally:
            self._spark.sparkContext.setJobDescription("")
            self._seconds[step] = self._seconds.get(step, 0.0) + time.monotonic() - start
