"""From the store's log into bronze and silver, batch by batch: the driver commits, tasks do the rest.

A batch is one commit of bronze, which carries the cursor to go on from, and then one of each table of silver.
Each bears the batch's number, so whoever goes on after a crash sees what is left to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from headrace.spark.lake import ledger, silver
from headrace.spark.lake.bronze import BATCH, Held, Written, bronze_of, write_events
from headrace.spark.lake.delta import Folder, Snapshot
from headrace.spark.lake.silver import ATTEMPTS_TABLE, JOBS_TABLE, LEVELS_TABLE, SILVER, Changed
from headrace.spark.lake.storage import Storage
from headrace.spark.lake.table import Table
from headrace.spark.lake.tasks import Tasks

SHARE_EVENTS = 125_000
"""Events that a task folds at once."""
SHARE_ROWS = 500_000
"""Open rows that a task may have to rewrite."""
WHOLE_SHARE_EVENTS = 250_000
MANY_EVENTS = 20_000
"""From here on a batch is worth a task per core."""

_Part = TypeVar("_Part")


class NotShared(OSError):
    """Tasks write where the driver does not see it."""


class Taken(NamedTuple):
    events: int
    """New ones."""
    cursor: str
    """Of the last event that was read; "" if there was none."""


class Intake:
    """Takes batches of events into bronze and silver."""

    def __init__(self, lake: Storage, tasks: Tasks) -> None:
        self.lake = lake
        self.bronze = bronze_of(lake)
        self.silver: Mapping[Table, Folder] = {
            table: silver.silver_of(lake, table) for table in SILVER
        }
        self._tasks = tasks

    def prepare(self, *, name: str | None = None, description: str | None = None) -> None:
        """Make the tables, or bring them up to date. Raises LakeTooNew."""
        self.bronze.prepare(name=name, description=description)
        for folder in self.silver.values():
            folder.prepare()

    # --- bronze ----------------------------------------------------------------------------------

    def append(
        self,
        parts: Sequence[_Part],
        read: Callable[[_Part], Iterable[pa.RecordBatch]],
        *,
        further: Callable[[str, str], str] = lambda _one, other: other,
        fence: int = 0,
    ) -> Taken:
        """Take into bronze what it does not hold of these parts of the log, in their order.

        `further` tells which of two cursors lies further along the log. `fence` is the lock's.
        """
        held = self.bronze.snapshot()
        number = held.mark(BATCH) + 1
        known = tuple(
            Held(file.path, file.low.get("seq", 0), file.high.get("seq", 2**62))
            for file in held.files
        )
        answers = self._tasks.run(partial(_written, read, self.lake, number, known), parts)
        events = sum(answer.events for answer in answers)
        last = next((answer.last for answer in reversed(answers) if answer.last), None)
        if events:
            actions = [action for answer in answers for action in answer.actions]
            check_seen(self.bronze.storage, [action.path for action in actions])
            counts = dict(held.note.get("ledger", {}))
            for answer in answers:
                counts = ledger.added(counts, answer.tally)
            assert last is not None
            before = held.note.get("cursor", "")
            moves = not before or further(before, last.cursor) == last.cursor
            note = {
                **held.note,
                "batch": number,
                **({"cursor": last.cursor, "last": last} if moves else {}),
                "ledger": counts,
                "fence": fence,
            }
            self.bronze.commit(held, actions, marks={BATCH: number}, note=note)
        return Taken(events, last.cursor if last else "")

    # --- silver ----------------------------------------------------------------------------------

    def catch_up(self) -> int:
        """Take into silver the batches that bronze has and silver has not; how many that were."""
        held = self.bronze.snapshot()
        last, first = held.mark(BATCH), self.silver[JOBS_TABLE].snapshot().mark(BATCH) + 1
        for number in range(first, last + 1):
            self._fold(held, number)
        return max(last + 1 - first, 0)

    def rebuild(self) -> None:
        """Fold all events of bronze again, in place of whatever silver holds.

        Readers see the old rows until the commits, and the new ones from them on. A crash before leaves the
        old; between two tables, one of each, all of them right. It counts as a batch: gold is to be computed
        from it, and the checks made.
        """
        held = self.bronze.snapshot()
        number = held.mark(BATCH) + 1
        standing = silver.Standing((), (), due=True)
        work = silver.Work(
            lake=self.lake,
            batch=number,
            events=tuple(file.path for file in held.files),
            older=(),
            jobs=standing,
            attempts=standing,
            levels_due=True,
            high_seq=-1,
            whole=True,
        )
        bases = {table: folder.snapshot() for table, folder in self.silver.items()}
        count = max(-(-held.rows // WHOLE_SHARE_EVENTS), self._tasks.parallelism)
        answers = self._tasks.run(partial(silver.fold_share, work), silver.shares(count))
        counts: dict[str, int] = {}
        for answer in answers:
            counts = ledger.added(counts, answer.tally)
        # What its events come to, whatever somebody has done to its rows.
        corrected = {**held.note, "batch": number, "ledger": counts}
        self.bronze.commit(held, (), marks={BATCH: number}, note=corrected)
        for table, base in bases.items():
            changed = silver.merged([_of(table, answer) for answer in answers])
            note = {
                "batch": number,
                "ledger": changed.ledger,
                "hours": None,
                "high": changed.high,
            }
            check_seen(self.silver[table].storage, [action.path for action in changed.actions])
            self.silver[table].commit(
                base, changed.actions, base.files, marks={BATCH: number}, note=note
            )

    def _fold(self, bronze: Snapshot, number: int) -> None:
        bases = {table: folder.snapshot() for table, folder in self.silver.items()}
        due = {table: base.mark(BATCH) < number for table, base in bases.items()}
        files = [file for file in bronze.files if file.may_hold("batch", number, number)]
        older = [file for file in bronze.files if file.low.get("batch", 0) < number]
        jobs = silver.standing_of(
            bases[JOBS_TABLE], "finalized_on", "last_seq", due=due[JOBS_TABLE]
        )
        attempts = silver.standing_of(
            bases[ATTEMPTS_TABLE], "ended_on", "leased_seq", due=due[ATTEMPTS_TABLE]
        )
        work = silver.Work(
            lake=self.lake,
            batch=number,
            events=tuple(file.path for file in files),
            older=tuple(silver.EndedFile(file.path, file.high.get("seq", 2**62)) for file in older),
            jobs=jobs,
            attempts=attempts,
            levels_due=due[LEVELS_TABLE],
            high_seq=bases[JOBS_TABLE].note.get("high", -1),
        )
        events = sum(file.rows for file in files)
        count = max(
            -(-events // SHARE_EVENTS),
            -(-sum(file.rows for file in jobs.open) // SHARE_ROWS),
            self._tasks.parallelism if events > MANY_EVENTS else 1,
        )
        answers = self._tasks.run(partial(silver.fold_share, work), silver.shares(count))
        for table in SILVER:
            if due[table]:
                changed = silver.merged([_of(table, answer) for answer in answers])
                self._commit(table, bases[table], number, changed)

    def _commit(self, table: Table, base: Snapshot, number: int, changed: Changed) -> None:
        folder = self.silver[table]
        rewritten = list(changed.gone.items())
        mended = self._tasks.run(partial(silver.without_rows, folder, _number_of(table)), rewritten)
        actions = [*changed.actions, *(action for part in mended for action in part)]
        check_seen(folder.storage, [action.path for action in actions])
        gone = {*changed.removed, *changed.gone}
        note: dict[str, Any] = {
            "batch": number,
            "ledger": ledger.added(base.note.get("ledger", {}), changed.ledger),
            "hours": changed.hours,
            "high": max(changed.high, base.note.get("high", -1)),
        }
        removed = [file for file in base.files if file.path in gone]
        folder.commit(base, actions, removed, marks={BATCH: number}, note=note)


def _number_of(table: Table) -> str:
    return "last_seq" if table is JOBS_TABLE else "leased_seq"


def _of(table: Table, answer: silver.Taken) -> Changed:
    return {
        JOBS_TABLE.name: answer.jobs,
        ATTEMPTS_TABLE.name: answer.attempts,
        LEVELS_TABLE.name: answer.levels,
    }[table.name]


def _written(
    read: Callable[[_Part], Iterable[pa.RecordBatch]],
    lake: Storage,
    number: int,
    held: tuple[Held, ...],
    part: _Part,
) -> Written:
    return write_events(lake, number, held, read(part))


def check_seen(storage: Storage, paths: Sequence[str]) -> None:
    """What tasks wrote where the driver cannot see it must not join a table: no reader could open it."""
    for path in storage.missing(paths if storage.is_local else paths[:1]):
        raise NotShared(
            f"{storage}/{path}, which a task has written, is not there for the driver; nothing was changed. "
            "The lake must lie at a url, or in a folder that all hosts of the cluster share"
        )
