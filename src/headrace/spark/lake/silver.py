"""Silver: what the events say of jobs and of attempts, kept exact batch by batch, in tasks.

A task has the jobs of some buckets. Where a job's events follow on its row, the row goes on from them; where
they come late, twice, or with a gap, all its events are read from bronze and folded again. Rows of jobs that
have ended are appended by the day they ended, and hardly ever change again; open rows lie apart, in files by
bucket, and those that a batch touches are rewritten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from deltalake.transaction import AddAction

from headrace.model import TERMINAL, EventKind
from headrace.spark import folding, schemas
from headrace.spark.lake import hours, ledger
from headrace.spark.lake.bronze import BUCKETS, EVENTS_TABLE, buckets_of, tally_of
from headrace.spark.lake.delta import (
    File,
    Folder,
    Snapshot,
    read_files,
    read_range,
)
from headrace.spark.lake.hours import Span
from headrace.spark.lake.storage import Storage
from headrace.spark.lake.table import Check, Table, columns_of, folder_of
from headrace.spark.schemas import meanings

_BUCKET = pa.field("bucket", pa.int32())
_ENDED = pa.field("ended", pa.bool_())
JOBS_SCHEMA = (
    folding.JOBS.append(_BUCKET)
    .append(pa.field("created_on", pa.date32()))
    .append(_ENDED)
    .append(pa.field("finalized_on", pa.date32()))
)
ATTEMPTS_SCHEMA = (
    schemas.ATTEMPTS.append(_BUCKET)
    .append(pa.field("leased_on", pa.date32()))
    .append(_ENDED)
    .append(pa.field("ended_on", pa.date32()))
)
LEVELS_SCHEMA = (
    folding.LEVELS.append(pa.field("batch", pa.int64()))
    .append(_BUCKET)
    .append(pa.field("day", pa.date32()))
)

REWRITE_ROWS = 50_000
"""Open rows of a task up to which they are kept in one file, whatever a batch touches of them."""
OPEN_FILES_MAX = 8
"""Files of open rows per task, beyond which they are joined."""

JOBS_TABLE = Table(
    name="silver/jobs",
    grain="One row per job; an id that was used again has a row for each of its lives.",
    key=("job_id", "born_seq"),
    columns=columns_of(
        JOBS_SCHEMA,
        {
            "job_id": "The job's id.",
            "born_seq?": "The seq of its enqueued event; none if the log began after it.",
            **meanings("jobs", "tenant", "queue", "type", "priority", "state", "version"),
            **meanings("jobs", "attempt", "failures", "losses"),
            "created_at": "When it was submitted; without a `born_seq`, its first known change.",
            **meanings("jobs", "run_at", "updated_at", "started_at", "finalized_at", "assignee"),
            **meanings("jobs", "assigned_at", "category", "code"),
            "message?": "The message of its last failure, cut to 1,000 characters.",
            "wait_us?": "Microseconds it waited, due and unclaimed, over all attempts.",
            "run_us?": "Microseconds it was held by workers, over all ended attempts.",
            "payload_bytes?": "The size of its payload.",
            "result_bytes?": "The size of its result.",
            **meanings("jobs", "tags", "key", "previous_id", "parent_id", "correlation_id"),
            **meanings("jobs", "limit_key", "max_attempts", "expires_at", "timeout_seconds"),
            "dependencies": "The jobs it waited for, and how.",
            "events": "How many of its events bronze holds: as many as `version`, unless some were trimmed.",
            "first_run_at": "When it was due at first.",
            "failed_seq?": "The seq of the event that told of its last failure.",
            "last_seq": "The seq of its last event.",
            "last_at": "When that happened.",
            "last_before?": "Its state before that.",
            "bucket": "The bucket of its id, 0 to 63.",
            "created_on": "The day of `created_at`, UTC.",
            "ended": "Whether its state is final.",
            "finalized_on?": "The day of `finalized_at`, UTC, none while it is open; the table is "
            "partitioned by it.",
        },
    ),
    partition_by=("finalized_on",),
    checks=(
        Check(
            "a job's row says what its last event says",
            """SELECT job.job_id, job.born_seq, job.state, job.version, job.last_seq FROM silver_jobs job
            JOIN bronze_events event ON event.seq = job.last_seq
            WHERE job.state <> event.after OR job.version <> event.version OR job.job_id <> event.job_id
              OR job.ended <> (job.finalized_at IS NOT NULL)""",
        ),
        Check(
            "silver holds every event of bronze once",
            """SELECT * FROM (SELECT coalesce(sum(events), 0) AS told FROM silver_jobs),
              (SELECT count(*) AS held FROM bronze_events) WHERE told <> held""",
        ),
        Check(
            "silver holds every life that bronze tells of",
            """SELECT * FROM (SELECT count(born_seq) AS told FROM silver_jobs),
                (SELECT count_if(kind = 'enqueued') AS held FROM bronze_events) WHERE told <> held""",
        ),
    ),
)

ATTEMPTS_TABLE = Table(
    name="silver/attempts",
    grain="One row per attempt: a claim of a job by a worker, and how it ended.",
    key=("job_id", "born_seq", "attempt"),
    columns=columns_of(
        ATTEMPTS_SCHEMA,
        {
            **meanings("attempts"),
            "bucket": "The bucket of its job's id, 0 to 63.",
            "leased_on": "The day of `leased_at`, UTC.",
            "ended": "Whether it has ended.",
            "ended_on?": "The day of `ended_at`, UTC, none while it runs; the table is partitioned by it.",
        },
    ),
    partition_by=("ended_on",),
    checks=(
        Check(
            "no attempt without a lease event, and no lease event without an attempt",
            """SELECT coalesce(event.seq, attempt.leased_seq) AS seq, event.job_id, attempt.job_id AS told
            FROM (SELECT seq, job_id FROM bronze_events WHERE kind = 'leased') event
            FULL OUTER JOIN (SELECT leased_seq, job_id FROM silver_attempts) attempt
            ON event.seq = attempt.leased_seq AND event.job_id = attempt.job_id
            WHERE event.seq IS NULL OR attempt.leased_seq IS NULL""",
        ),
        Check(
            "an attempt has ended if, and only if, it has an outcome",
            """SELECT * FROM silver_attempts WHERE ended <> (outcome IS NOT NULL)
                OR ended <> (ended_at IS NOT NULL) OR ended <> (ended_seq IS NOT NULL)""",
        ),
        Check(
            "jobs wait and run as long as their attempts do",
            """SELECT * FROM (SELECT coalesce(sum(wait_us), 0) AS job_wait_us,
                coalesce(sum(run_us), 0) AS job_run_us FROM silver_jobs),
              (SELECT coalesce(sum(wait_us), 0) AS wait_us, coalesce(sum(run_us), 0) AS run_us
                FROM silver_attempts) WHERE job_wait_us <> wait_us OR job_run_us <> run_us""",
        ),
    ),
)

LEVELS_TABLE = Table(
    name="silver/levels",
    grain="By how much a queue's levels rise in a minute. Rows add up: there is one per queue, minute, batch "
    "and task, and it may take back what an earlier batch has told.",
    key=("queue", "minute", "batch", "bucket"),
    columns=columns_of(
        LEVELS_SCHEMA,
        {
            "queue": "The queue.",
            "minute": "The minute, UTC; ahead of the last event where jobs become due then.",
            "waiting": "Jobs that have not ended and do not run: blocked, due later, or ready.",
            "ready": "Of those, jobs that are due and claimable.",
            "running": "Jobs leased to a worker.",
            "changes": "How many jobs changed any of these.",
            "batch": "The batch that told it.",
            "bucket": "The first bucket of the jobs that the task had.",
            "day": "The day of `minute`, UTC; the table is partitioned by it.",
        },
    ),
    partition_by=("day",),
)

SILVER = (LEVELS_TABLE, ATTEMPTS_TABLE, JOBS_TABLE)
"""In the order of their commits: what the first two are computed from is the jobs before."""

_SCHEMAS = {
    JOBS_TABLE: JOBS_SCHEMA,
    ATTEMPTS_TABLE: ATTEMPTS_SCHEMA,
    LEVELS_TABLE: LEVELS_SCHEMA,
}
_ORDER = {JOBS_TABLE: "last_seq", ATTEMPTS_TABLE: "leased_seq", LEVELS_TABLE: "minute"}
"""The number that tells rows of a table apart, by which its files are sorted."""
_TERMINAL = pa.array(sorted(TERMINAL), pa.string())
_EVENTS = pa.schema([schemas.EVENTS.field(name) for name in folding.NEEDED])
_BATCHED = _EVENTS.append(pa.field("batch", pa.int64()))

_JOB_ID = pa.schema([folding.JOBS.field("job_id")])

_Numbers = npt.NDArray[np.int64]


def silver_of(lake: Storage, table: Table) -> Folder:
    return folder_of(lake, table, _SCHEMAS[table])


# --- what tasks are told -------------------------------------------------------------------------


class OpenFile(NamedTuple):
    """A file of rows that may go on."""

    path: str
    rows: int
    low: int
    """The least bucket in it."""
    high: int


class EndedFile(NamedTuple):
    """A file of rows that hardly change any more."""

    path: str
    high: int
    """The greatest number in it, of `_ORDER`."""


class Standing(NamedTuple):
    """What a table of silver held before the batch, and whether it holds the batch already."""

    open: tuple[OpenFile, ...]
    ended: tuple[EndedFile, ...]
    due: bool


class Work(NamedTuple):
    """What is the same for all tasks of a batch."""

    lake: Storage
    batch: int
    events: tuple[str, ...]
    """Files of bronze that hold the batch."""
    older: tuple[EndedFile, ...]
    """Files of bronze that hold events of batches before."""
    jobs: Standing
    attempts: Standing
    levels_due: bool
    high_seq: int
    """Up to here rows may tell of events."""
    whole: bool = False
    """All of bronze is folded anew, in place of whatever silver holds."""


class Share(NamedTuple):
    """The buckets of one task, both included."""

    low: int
    high: int


class Changed(NamedTuple):
    """What one task has made of its share of a table."""

    actions: tuple[AddAction, ...]
    removed: tuple[str, ...]
    """Open files whose rows are all in the new ones, as far as this share has them."""
    gone: Mapping[str, _Numbers]
    """By file of ended rows: those that are there no longer, by the number of `_ORDER`."""
    ledger: Mapping[str, int]
    """By how much the table's counts change."""
    hours: Mapping[str, tuple[Span, ...]]
    high: int = -1
    """The greatest number of `_ORDER` among the new rows."""


NOTHING = Changed((), (), {}, {}, {})


class Taken(NamedTuple):
    jobs: Changed
    attempts: Changed
    levels: Changed
    refolded: int
    """Jobs whose events were read from bronze again."""
    tally: Mapping[str, int] = {}
    """Of the whole of bronze: what its events come to."""


def standing_of(snapshot: Snapshot, partition: str, number: str, *, due: bool) -> Standing:
    open_files, ended_files = [], []
    for file in snapshot.files:
        if file.partition[partition] is None:
            open_files.append(
                OpenFile(file.path, file.rows, file.low.get("bucket", 0), _high_bucket(file))
            )
        else:
            ended_files.append(EndedFile(file.path, file.high.get(number, _ENDLESS)))
    return Standing(tuple(open_files), tuple(ended_files), due)


_ENDLESS = 2**62


def _high_bucket(file: File) -> int:
    return int(file.high.get("bucket", BUCKETS - 1))


def shares(count: int) -> list[Share]:
    """So many, or the next power of two: a share of few buckets lies within one share of many."""
    parts = 1
    while parts < min(count, BUCKETS):
        parts *= 2
    width = BUCKETS // parts
    return [Share(low, low + width - 1) for low in range(0, BUCKETS, width)]


# --- what tasks do -------------------------------------------------------------------------------


def fold_share(work: Work, share: Share) -> Taken:
    """Fold a batch's events of some buckets into the rows of their jobs, and write the files."""
    events = _events(work, share)
    if work.whole:
        folded = folding.fold(events)
        rows = _Rows(JOBS_SCHEMA.empty_table(), ATTEMPTS_SCHEMA.empty_table())
        taken = _taken(work, share, rows, _Change.of(folded, old=rows), refolded=0)
        return taken._replace(tally=tally_of(events))
    rows = _open_rows(work, share, pc.unique(events["job_id"]))
    if not events.num_rows and not rows.must_move:
        return Taken(NOTHING, NOTHING, NOTHING, 0)
    latest = _latest(rows.jobs, events)
    plain = folding.follows_on(events, latest)
    late = pc.unique(
        events.filter(pc.less_equal(events["seq"], pa.scalar(work.high_seq, pa.int64())))["job_id"]
    )
    again = pc.unique(events["job_id"])
    again = again.filter(pc.or_(pc.is_in(again, late), pc.invert(pc.is_in(again, plain))))
    refolded = pc.is_in(events["job_id"], value_set=again)
    on = events.filter(pc.invert(refolded))
    bases = latest.filter(pc.invert(pc.is_in(latest["job_id"], value_set=again)))
    running = rows.attempts.filter(pc.is_in(rows.attempts["job_id"], value_set=bases["job_id"]))
    folded = folding.fold(on, bases, running)
    change = _Change.of(folded, old=_based(on, bases, running, folded))
    if len(again):
        told = events.filter(refolded)
        bounds = _bounds(told, latest, plain)
        change = change.with_(_refold(work, share, rows, told, bounds))
    return _taken(work, share, rows, change, refolded=len(again))


def without_rows(folder: Folder, number: str, told: tuple[str, _Numbers]) -> list[AddAction]:
    """The rows of a file that stay, in new files."""
    path, gone = told
    rows = read_files(folder.storage, folder.schema, folder.partition_by, [path])
    return folder.write(rows.filter(pa.array(~np.isin(rows[number].to_numpy(), gone))))


class _Rows(NamedTuple):
    """Rows that were read."""

    jobs: pa.Table
    attempts: pa.Table
    job_files: tuple[str, ...] = ()
    """Those whose rows these are, all of them within the share: they will be written anew."""
    attempt_files: tuple[str, ...] = ()
    must_move: bool = False
    """Some files reach beyond the share: each task takes its part of them."""


class _Change(NamedTuple):
    """Rows that go, and rows that come in their place."""

    old_jobs: pa.Table
    jobs: pa.Table
    old_attempts: pa.Table
    attempts: pa.Table
    levels: pa.Table
    spans: Mapping[str, tuple[Span, ...]]
    gone_jobs: Mapping[str, _Numbers]
    gone_attempts: Mapping[str, _Numbers]

    @classmethod
    def of(cls, folded: folding.Folded, old: _Rows) -> _Change:
        """Of events that follow on: the past of no job looks different."""
        jobs, attempts = _job_rows(folded.jobs), _attempt_rows(folded.attempts)
        births = old.jobs["born_seq"].combine_chunks()
        begun = jobs.filter(pc.invert(pc.is_in(jobs["born_seq"], value_set=births)))
        fresh = attempts.filter(
            pc.invert(
                pc.is_in(
                    attempts["leased_seq"], value_set=old.attempts["leased_seq"].combine_chunks()
                )
            )
        )
        spans = {
            "jobs": (*hours.hours_of(jobs["finalized_at"], begun["created_at"]),),
            "paths": (*hours.hours_of(jobs["finalized_at"]),),
            "attempts": (*hours.hours_of(fresh["leased_at"], attempts["ended_at"]),),
            "workers": (*hours.hours_between(attempts["leased_at"], attempts["ended_at"]),),
            "levels": (*hours.since(folded.levels["minute"]),),
        }
        return cls(old.jobs, jobs, old.attempts, attempts, folded.levels, spans, {}, {})

    def with_(self, other: _Change) -> _Change:
        return _Change(
            pa.concat_tables([self.old_jobs, other.old_jobs]),
            pa.concat_tables([self.jobs, other.jobs]),
            pa.concat_tables([self.old_attempts, other.old_attempts]),
            pa.concat_tables([self.attempts, other.attempts]),
            folding.levels_summed(pa.concat_tables([self.levels, other.levels])),
            {name: (*self.spans[name], *other.spans[name]) for name in self.spans},
            other.gone_jobs,
            other.gone_attempts,
        )


def _events(work: Work, share: Share) -> pa.Table:
    bronze = work.lake.within(EVENTS_TABLE.name)
    parts = [_EVENTS.empty_table()]
    for path in work.events:
        rows = read_range(bronze, path, _BATCHED, "bucket", share)
        if not work.whole:
            rows = rows.filter(pc.equal(rows["batch"], work.batch))
        parts.append(rows.select(_EVENTS.names))
    return pa.concat_tables(parts)


def _open_rows(work: Work, share: Share, ids: pa.Array) -> _Rows:
    jobs, job_files, jobs_move = _open_of(work, share, ids, JOBS_TABLE, work.jobs)
    attempts, attempt_files, attempts_move = _open_of(
        work, share, ids, ATTEMPTS_TABLE, work.attempts
    )
    return _Rows(jobs, attempts, job_files, attempt_files, jobs_move or attempts_move)


def _open_of(
    work: Work, share: Share, ids: pa.Array, table: Table, held: Standing
) -> tuple[pa.Table, tuple[str, ...], bool]:
    """Open rows that the batch may touch, with all others of their files, and those files."""
    storage, schema = work.lake.within(table.name), _SCHEMAS[table]
    here = [file for file in held.open if file.low <= share.high and file.high >= share.low]
    wider = [file for file in here if file.low < share.low or file.high > share.high]
    own = [file for file in here if file not in wider]
    every = sum(file.rows for file in own) <= REWRITE_ROWS
    if len(own) > OPEN_FILES_MAX:  # the small ones become one
        every_small = sorted(own, key=lambda file: file.rows)[: len(own) - OPEN_FILES_MAX // 2]
    else:
        every_small = []
    rows = [schema.empty_table()]
    files: list[str] = []
    for file in here:
        take = every or file in wider or file in every_small
        if not take:
            keys = read_range(storage, file.path, _JOB_ID, "bucket", share)
            take = bool(pc.any(pc.is_in(keys["job_id"], value_set=ids), min_count=0).as_py())
        if take:
            rows.append(read_range(storage, file.path, schema, "bucket", share))
            files.append(file.path)
    return pa.concat_tables(rows), tuple(files), bool(wider)


def _latest(jobs: pa.Table, events: pa.Table) -> pa.Table:
    """Of the jobs that events touch, the latest open row of each."""
    touched = jobs.filter(pc.is_in(jobs["job_id"], value_set=pc.unique(events["job_id"])))
    if not len(touched):
        return touched
    last = touched.group_by("job_id").aggregate([("last_seq", "max")])["last_seq_max"]
    return touched.filter(pc.is_in(touched["last_seq"], value_set=last.combine_chunks()))


def _based(events: pa.Table, bases: pa.Table, running: pa.Table, folded: folding.Folded) -> _Rows:
    """The rows that went on: those of jobs that began anew stay as they are."""
    first = events.group_by("job_id").aggregate([("seq", "min")])["seq_min"].combine_chunks()
    begun = events.filter(
        pc.and_(
            pc.equal(events["kind"], EventKind.ENQUEUED), pc.is_in(events["seq"], value_set=first)
        )
    )["job_id"]
    went_on = bases.filter(pc.invert(pc.is_in(bases["job_id"], value_set=begun.combine_chunks())))
    ended = running.filter(
        pc.is_in(running["leased_seq"], value_set=folded.attempts["leased_seq"].combine_chunks())
    )
    return _Rows(went_on, ended)


def _refold(work: Work, share: Share, rows: _Rows, events: pa.Table, bounds: _Bounds) -> _Change:
    """Read all events of these jobs again, as far back as they may tell of the same lives."""
    least = int(min(bounds.since, default=0))
    bronze = work.lake.within(EVENTS_TABLE.name)
    older = [events.slice(0, 0)]
    for file in work.older:
        if file.high >= least:
            found = read_range(bronze, file.path, _BATCHED, "bucket", share)
            found = found.filter(pc.less(found["batch"], work.batch))
            older.append(bounds.within(found, "seq").select(_EVENTS.names))
    before = folding.fold(known := pa.concat_tables(older))
    after = folding.fold(pa.concat_tables([known, events]))
    old_jobs, gone_jobs = _rows_again(work, JOBS_TABLE, rows.jobs, bounds, least)
    old_attempts, gone_attempts = _rows_again(work, ATTEMPTS_TABLE, rows.attempts, bounds, least)
    jobs, attempts = _job_rows(after.jobs), _attempt_rows(after.attempts)
    levels = pa.concat_tables([after.levels, folding.taken_back(before.levels)])
    levels = folding.levels_summed(levels)
    both_attempts = [*(old_attempts, attempts)]
    spans = {
        # Where the past itself looks different, the whole life is news.
        "jobs": (
            *hours.hours_of(
                *(
                    rows[name]
                    for rows in (old_jobs, jobs)
                    for name in ("created_at", "finalized_at")
                )
            ),
        ),
        "paths": (*hours.since(old_jobs["created_at"], jobs["created_at"]),),
        "attempts": (
            *hours.hours_of(
                *(rows[name] for rows in both_attempts for name in ("leased_at", "ended_at"))
            ),
        ),
        "workers": tuple(
            span
            for rows in both_attempts
            for span in hours.hours_between(rows["leased_at"], rows["ended_at"])
        ),
        "levels": (*hours.since(levels["minute"]),),
    }
    return _Change(old_jobs, jobs, old_attempts, attempts, levels, spans, gone_jobs, gone_attempts)


class _Bounds(NamedTuple):
    """From which seq on each job is folded again: a life begins there, or all of them."""

    job_ids: pa.Array
    since: _Numbers

    def within(self, rows: pa.Table, number: str) -> pa.Table:
        """Those rows of these jobs whose number is not below the job's bound."""
        place = pc.fill_null(pc.index_in(rows["job_id"], value_set=self.job_ids), -1)
        at = place.to_numpy()
        bound = np.append(self.since, 0)[at]
        return rows.filter(pa.array((at >= 0) & (rows[number].to_numpy() >= bound)))


def _bounds(events: pa.Table, latest: pa.Table, plain: pa.Array) -> _Bounds:
    first = events.group_by("job_id").aggregate([("seq", "min")])
    ids = first["job_id"].combine_chunks()
    firsts = first["seq_min"].to_numpy()
    born = events.filter(pc.equal(events["kind"], EventKind.ENQUEUED))["seq"]
    begun = np.isin(firsts, born.to_numpy())
    # Of those that go on from a row: the whole life.
    row = pc.index_in(ids, value_set=latest["job_id"].combine_chunks())
    birth = pc.fill_null(latest["born_seq"].combine_chunks().take(row), 0).to_numpy()
    goes_on = pc.is_in(ids, value_set=plain).to_numpy(zero_copy_only=False)
    return _Bounds(ids, np.where(begun, firsts, np.where(goes_on, birth, 0)))


def _rows_again(
    work: Work, table: Table, open_rows: pa.Table, bounds: _Bounds, least: int
) -> tuple[pa.Table, dict[str, _Numbers]]:
    """The rows that a new fold replaces, and which of them lie in files of ended rows."""
    number, schema = _ORDER[table], _SCHEMAS[table]
    storage = work.lake.within(table.name)
    held = work.jobs if table.name == JOBS_TABLE.name else work.attempts
    found = [bounds.within(open_rows, number)]
    gone: dict[str, _Numbers] = {}
    for file in held.ended:
        if file.high < least:
            continue
        keys = read_files(
            storage, schema, table.partition_by, [file.path], columns=["job_id", number]
        )
        here = bounds.within(keys, number)
        if len(here):
            gone[file.path] = here[number].to_numpy()
            rows = read_files(storage, schema, table.partition_by, [file.path])
            found.append(bounds.within(rows, number))
    return pa.concat_tables(found), gone


def _taken(work: Work, share: Share, rows: _Rows, change: _Change, *, refolded: int) -> Taken:
    """Write what has changed."""
    jobs = attempts = levels = NOTHING
    if work.jobs.due:
        jobs = _changed(
            work,
            _Part(
                JOBS_TABLE,
                rows.jobs,
                change.old_jobs,
                change.jobs,
                rows.job_files,
                change.gone_jobs,
            ),
            {name: change.spans[name] for name in ("jobs", "paths")},
        )
    if work.attempts.due:
        attempts = _changed(
            work,
            _Part(
                ATTEMPTS_TABLE,
                rows.attempts,
                change.old_attempts,
                change.attempts,
                rows.attempt_files,
                change.gone_attempts,
            ),
            {name: change.spans[name] for name in ("attempts", "workers")},
        )
    if work.levels_due:
        count = len(change.levels)
        told = (
            change.levels.append_column(
                "batch", pa.repeat(pa.scalar(work.batch, pa.int64()), count)
            )
            .append_column("bucket", pa.repeat(pa.scalar(share.low, pa.int32()), count))
            .append_column("day", change.levels["minute"].cast(pa.date32()))
        )
        levels = NOTHING._replace(
            actions=tuple(silver_of(work.lake, LEVELS_TABLE).write(told)),
            hours={"levels": change.spans["levels"]},
        )
    return Taken(jobs, attempts, levels, refolded)


class _Part(NamedTuple):
    """A share of one table, and what becomes of it."""

    table: Table
    open: pa.Table
    """Open rows that were read, of `files`."""
    old: pa.Table
    """Rows that go."""
    new: pa.Table
    files: tuple[str, ...]
    gone: Mapping[str, _Numbers]


def _changed(work: Work, part: _Part, spans: Mapping[str, tuple[Span, ...]]) -> Changed:
    """Write the open rows that stay, and those that are new."""
    number = _ORDER[part.table]
    replaced = part.old[number].combine_chunks()
    stay = part.open.filter(pc.invert(pc.is_in(part.open[number], value_set=replaced)))
    rows = pa.concat_tables([stay, part.new]).sort_by(number)
    tally = ledger.tally(part.table.name, part.new)
    for name, value in ledger.tally(part.table.name, part.old).items():
        tally[name] -= value
    return Changed(
        actions=tuple(silver_of(work.lake, part.table).write(rows)),
        removed=part.files,
        gone=part.gone,
        ledger=tally,
        hours=spans,
        high=pc.max(part.new[number]).as_py() if len(part.new) else -1,
    )


def _job_rows(folded: pa.Table) -> pa.Table:
    """Folded jobs as rows of their table."""
    ended = pc.is_in(folded["state"], _TERMINAL)
    return _placed(folded, "created_at", ended, "finalized_at", JOBS_SCHEMA)


def _attempt_rows(folded: pa.Table) -> pa.Table:
    """Folded attempts as rows of their table."""
    ended = pc.is_valid(folded["outcome"])
    return _placed(folded, "leased_at", ended, "ended_at", ATTEMPTS_SCHEMA)


def _placed(
    rows: pa.Table, began: str, ended: pa.ChunkedArray, end: str, schema: pa.Schema
) -> pa.Table:
    """With the columns that say where a row lies."""
    columns: list[Any] = [
        *rows.columns,
        pa.array(buckets_of(rows["job_id"]), pa.int32()),
        rows[began].cast(pa.date32()),
        ended,
        rows[end].cast(pa.date32()),
    ]
    return pa.table(columns, names=schema.names).cast(schema)


def merged(parts: Sequence[Changed]) -> Changed:
    """What all tasks have made of a table."""
    counts: dict[str, int] = {}
    spans: dict[str, list[Span]] = {}
    gone: dict[str, _Numbers] = {}
    for part in parts:
        for name, value in part.ledger.items():
            counts[name] = counts.get(name, 0) + value
        for name, found in part.hours.items():
            spans.setdefault(name, []).extend(found)
        for path, numbers in part.gone.items():
            gone[path] = np.append(gone.get(path, np.array([], np.int64)), numbers)
    united = {name: hours.union(found) for name, found in spans.items()}
    return Changed(
        actions=tuple(action for part in parts for action in part.actions),
        removed=tuple(dict.fromkeys(path for part in parts for path in part.removed)),
        gone=gone,
        ledger=counts,
        hours={name: found.spans if found else () for name, found in united.items()},
        high=max((part.high for part in parts), default=-1),
    )
