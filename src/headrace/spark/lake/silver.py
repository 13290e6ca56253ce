"""Silver: what the events say of jobs and of attempts, kept exact batch by batch.

A row of `silver/jobs` holds all events of its job. So a batch is taken in by folding the rows it touches
again, together with the batch's events, and replacing them: events that come late, twice or in another order
give the same row as if they had come in order. Both tables keep what is open apart from what has ended:
hardly anything that has ended changes again, so a batch rewrites files of open jobs and appends the rest.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headrace.model import TERMINAL, EventKind
from headrace.spark import folding, schemas
from headrace.spark.lake.delta import File, Folder, Snapshot, without
from headrace.spark.lake.news import first_news
from headrace.spark.lake.table import Check, Table, columns_of
from headrace.spark.schemas import meanings

if TYPE_CHECKING:
    from pathlib import Path

BATCH = "headrace batch"
"""The mark: up to which of bronze's batches a table is computed."""

_ENDED = pa.field("ended", pa.bool_())
JOBS_SCHEMA = folding.JOBS.append(pa.field("created_on", pa.date32())).append(_ENDED)
ATTEMPTS_SCHEMA = schemas.ATTEMPTS.append(pa.field("leased_on", pa.date32())).append(_ENDED)

_TERMINAL = pa.array(sorted(TERMINAL), pa.string())

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
            "last_seq": "The seq of its last event.",
            "timeline": "All its events, in order; their columns are those of `bronze/events`.",
            "created_on": "The day of `created_at`, UTC; the table is partitioned by it.",
            "ended": "Whether its state is final; the table is partitioned by it.",
        },
    ),
    partition_by=("created_on", "ended"),
    checks=(
        Check(
            "a job's row says what its last event says",
            """SELECT job_id, born_seq, state, version, last_seq FROM silver_jobs
            WHERE last_seq >= :seq AND (state <> element_at(timeline, -1).after
               OR version <> element_at(timeline, -1).version
               OR last_seq <> element_at(timeline, -1).seq OR ended <> (finalized_at IS NOT NULL))""",
        ),
        Check(
            "silver holds every event of bronze once",
            """SELECT * FROM (SELECT coalesce(sum(size(filter(timeline, event -> event.seq >= :seq))), 0)
                AS told FROM silver_jobs WHERE last_seq >= :seq),
              (SELECT count(*) AS held FROM bronze_events WHERE seq >= :seq) WHERE told <> held""",
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
            "leased_on": "The day of `leased_at`, UTC; the table is partitioned by it.",
            "ended": "Whether it has ended; the table is partitioned by it.",
        },
    ),
    partition_by=("leased_on", "ended"),
    checks=(
        Check(
            "no attempt without a lease event, and no lease event without an attempt",
            """SELECT coalesce(event.seq, attempt.leased_seq) AS seq, event.job_id, attempt.job_id AS told
            FROM (SELECT seq, job_id FROM bronze_events WHERE kind = 'leased' AND seq >= :seq) event
            FULL OUTER JOIN
              (SELECT leased_seq, job_id FROM silver_attempts WHERE leased_seq >= :seq) attempt
            ON event.seq = attempt.leased_seq AND event.job_id = attempt.job_id
            WHERE event.seq IS NULL OR attempt.leased_seq IS NULL""",
        ),
        Check(
            "there are as many attempts as lease events",
            """SELECT * FROM (SELECT count(*) AS told FROM silver_attempts),
                (SELECT count_if(kind = 'leased') AS held FROM bronze_events) WHERE told <> held""",
        ),
        Check(
            "an attempt has ended if, and only if, it has an outcome",
            """SELECT * FROM silver_attempts WHERE coalesce(ended_seq, leased_seq) >= :seq
              AND (ended <> (outcome IS NOT NULL) OR ended <> (ended_at IS NOT NULL)
                OR ended <> (ended_seq IS NOT NULL))""",
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


class Silver:
    """Both tables. A batch is taken in by attempts first: what it is computed from is the jobs before."""

    def __init__(self, lake: Path) -> None:
        self.jobs = Folder(lake / JOBS_TABLE.name, JOBS_SCHEMA, JOBS_TABLE.partition_by)
        self.attempts = Folder(
            lake / ATTEMPTS_TABLE.name, ATTEMPTS_SCHEMA, ATTEMPTS_TABLE.partition_by
        )

    def plan(self, events: pa.Table) -> Plan:
        """What is to change so that silver holds these events, too."""
        snapshot = self.jobs.snapshot()
        old = _rows_of(snapshot, events)
        before = folding.fold(folding.events_of(old)).attempts
        needed = folding.events_of(old)
        after = folding.fold(
            pa.concat_tables([needed, events.select(needed.schema.names).cast(needed.schema)])
        )
        return Plan(snapshot, events, old, before, after)

    def take(self, plan: Plan, batch: int) -> None:
        """Carry the plan out, as far as that has not been done."""
        attempts = self.attempts.snapshot()
        if attempts.mark(BATCH) < batch:
            gone, come = plan.changed_attempts()
            days = set(gone["leased_at"].cast(pa.date32()).to_pylist())
            files = [file for file in attempts.files if file.partition["leased_on"] in days]
            touched, kept = without(
                attempts, "leased_seq", gone["leased_seq"].combine_chunks(), files
            )
            rows = pa.concat_tables([kept, attempt_rows(come)])
            self.attempts.commit(attempts, self.attempts.write(rows), touched, marks={BATCH: batch})
        jobs = plan.snapshot
        if jobs.mark(BATCH) < batch:
            days = set(plan.old["created_on"].to_pylist())
            files = [file for file in jobs.files if file.partition["created_on"] in days]
            touched, kept = without(jobs, "last_seq", plan.old["last_seq"].combine_chunks(), files)
            rows = pa.concat_tables([kept, job_rows(plan.after.jobs)])
            self.jobs.commit(jobs, self.jobs.write(rows), touched, marks={BATCH: batch})


class Plan(NamedTuple):
    snapshot: Snapshot
    events: pa.Table
    """What is new."""
    old: pa.Table
    """The rows of jobs that the events touch, as they stand."""
    before: pa.Table
    """Their attempts."""
    after: folding.Folded

    @property
    def since(self) -> datetime:
        """Gold is to be computed from this moment on."""
        gone, come = self.changed_attempts()
        return first_news(
            events=self.events,
            late=_late(self.events, self.snapshot),
            old=self.old,
            new=self.after.jobs,
            gone=gone,
            come=come,
        )

    def changed_attempts(self) -> tuple[pa.Table, pa.Table]:
        """Those that go, and those that come.

        An attempt's row is made of the event that began it, the one that ended it and its job's birth:
        where these three are the same, so is the row.
        """
        known_by = ["leased_seq", "ended_seq", "born_seq"]
        gone = self.before.join(self.after.attempts, known_by, join_type="left anti")
        come = self.after.attempts.join(self.before, known_by, join_type="left anti")
        return gone.select(schemas.ATTEMPTS.names), come.select(schemas.ATTEMPTS.names)


def job_rows(folded: pa.Table) -> pa.Table:
    """Folded jobs as rows of their table, in the order in which they changed last."""
    ended = pc.is_in(folded["state"], _TERMINAL)
    return _placed(folded, folded["created_at"], ended, JOBS_SCHEMA, "last_seq")


def attempt_rows(folded: pa.Table) -> pa.Table:
    """Folded attempts as rows of their table, in the order in which they began."""
    ended = pc.is_valid(folded["outcome"])
    return _placed(folded, folded["leased_at"], ended, ATTEMPTS_SCHEMA, "leased_seq")


def _placed(
    rows: pa.Table, at: pa.ChunkedArray, ended: pa.ChunkedArray, schema: pa.Schema, order: str
) -> pa.Table:
    """With the columns that the table is partitioned by."""
    columns = [*rows.columns, at.cast(pa.date32()), ended]
    return pa.table(columns, names=schema.names).sort_by(order).cast(schema)


def _rows_of(snapshot: Snapshot, events: pa.Table) -> pa.Table:
    """The rows of the jobs that these events may change."""
    if not snapshot.files:
        return snapshot.schema.empty_table()
    ids = pc.unique(events["job_id"])
    late = _late(events, snapshot)
    begun = _begun(events)
    older = ids.filter(pc.or_(pc.invert(pc.is_in(ids, begun)), pc.is_in(ids, late)))
    if not len(older):
        return snapshot.schema.empty_table()
    open_files = [file for file in snapshot.files if not file.partition["ended"]]
    ended_files = [file for file in snapshot.files if file.partition["ended"]]
    found = _find(snapshot, open_files, older)
    # Anywhere among the ended ones lie those that change once more, and those that began before the log.
    known = pa.concat_arrays([begun, _continued(found, events)])
    rows = [found, _find(snapshot, ended_files, older.filter(pc.invert(pc.is_in(older, known))))]
    # For what is known and has come late, only rows that tell of something later matter. On PostgreSQL
    # hardly a batch is without such events: this must not look through all that ever ended.
    sought = older.filter(pc.and_(pc.is_in(older, known), pc.is_in(older, late)))
    if len(sought):
        since = pc.min(events.filter(_among(events["job_id"], sought))["seq"]).as_py()
        newer = [file for file in ended_files if file.high.get("last_seq", since) >= since]
        rows.append(_find(snapshot, newer, sought))
    return pa.concat_tables(rows)


def _late(events: pa.Table, snapshot: Snapshot) -> pa.Array:
    """The jobs of events that come when rows already tell of later ones."""
    high = snapshot.high("last_seq")
    if high is None:
        return pa.array([], pa.string())
    return pc.unique(events.filter(pc.less(events["seq"], high))["job_id"])


def _among(column: pa.ChunkedArray, values: pa.Array) -> pa.ChunkedArray:
    return pc.is_in(column, value_set=values)


def _continued(rows: pa.Table, events: pa.Table) -> pa.Array:
    """The jobs whose first event here is the very next change of their row."""
    first = events.group_by("job_id").aggregate([("seq", "min")])["seq_min"].combine_chunks()
    changes = events.filter(pc.is_in(events["seq"], first)).select(["job_id", "before", "version"])
    stand = pa.table(
        {
            "job_id": rows["job_id"],
            "before": rows["state"],
            "version": pc.add(rows["version"], pa.scalar(1, pa.int32())),
        }
    )
    next_ones = changes.join(stand, ["job_id", "before", "version"], join_type="left semi")
    return next_ones["job_id"].combine_chunks()


def _begun(events: pa.Table) -> pa.Array:
    """The jobs whose first event here is their enqueued one: whatever came before was another life."""
    first = events.group_by("job_id").aggregate([("seq", "min")])
    born = events.filter(pc.equal(events["kind"], EventKind.ENQUEUED))["seq"].combine_chunks()
    return first.filter(pc.is_in(first["seq_min"], born))["job_id"].combine_chunks()


def _find(snapshot: Snapshot, files: list[File], ids: pa.Array) -> pa.Table:
    """All rows with these ids. The wide columns are read only of files that have one."""
    rows = [snapshot.schema.empty_table()]
    for file in files if len(ids) else ():
        # Not by the reader's own filter: it stumbles over texts in files that other writers made.
        here = pc.is_in(snapshot.read(["job_id"], files=[file])["job_id"], value_set=ids)
        if pc.any(here).as_py():
            rows.append(snapshot.read(files=[file]).filter(here))
    return pa.concat_tables(rows)
