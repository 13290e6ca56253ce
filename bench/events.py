# ruff: noqa: S608 - the texts are put together from our own words and numbers
"""Histories in bulk, for measurements of what reads the log: jobs and their events, straight into the tables.

Most jobs complete at once, one in ten after a retry, one in twenty ends dead. They agree with what a
worker would have left: folding the events gives the jobs.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

import asyncpg

from headrace import JobSpec, connect
from headrace.clock import to_us
from headrace.stores.postgres import opening
from headrace.stores.postgres.sql import quote

TENANTS = ("default", "acme", "globex")
QUEUES = ("mail", "images", "reports", "billing")
TYPES = ("send", "resize", "render", "charge")
EVENTS_PER_JOB = 3.2
CHUNK_JOBS = 50_000
"""Of one transaction."""
SPREAD_US = 4 * 86_400 * 1_000_000
FIRST = to_us(datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)) - SPREAD_US
"""The four days before this one."""

# story, step, kind, before, after, version, attempt, failures, after so many µs, ready at, wait, run, error
_STEPS = """
(0, 1, 'enqueued', NULL, 'pending', 1, 0, 0, 0, 0, NULL, NULL, NULL),
(0, 2, 'leased', 'pending', 'running', 2, 1, 0, 500000, 0, 500000, NULL, NULL),
(0, 3, 'completed', 'running', 'completed', 3, 1, 0, 2500000, 0, NULL, 2000000, NULL),
(1, 1, 'enqueued', NULL, 'pending', 1, 0, 0, 0, 0, NULL, NULL, NULL),
(1, 2, 'leased', 'pending', 'running', 2, 1, 0, 500000, 0, 500000, NULL, NULL),
(1, 3, 'retrying', 'running', 'retrying', 3, 1, 1, 1500000, 10000000, NULL, 1000000, 'HTTP_503'),
(1, 4, 'leased', 'retrying', 'running', 4, 2, 1, 10500000, 10000000, 500000, NULL, NULL),
(1, 5, 'completed', 'running', 'completed', 5, 2, 1, 12500000, 10000000, NULL, 2000000, NULL),
(2, 1, 'enqueued', NULL, 'pending', 1, 0, 0, 0, 0, NULL, NULL, NULL),
(2, 2, 'leased', 'pending', 'running', 2, 1, 0, 500000, 0, 500000, NULL, NULL),
(2, 3, 'dead', 'running', 'dead', 3, 1, 1, 1500000, 0, NULL, 1000000, 'HTTP_410')
"""
_STEP_COLUMNS = (
    "story, step, kind, before, after, version, attempt, failures, later, ready,"
    " wait_us, run_us, code"
)
_STORY = "CASE WHEN n % 20 = 0 THEN 2 WHEN n % 20 <= 2 THEN 1 ELSE 0 END"


def make(url: str, events: int, *, first: int = 0, density: int | None = None) -> int:
    """About so many events more, of jobs numbered from `first` on; how many jobs that are.

    `density`: so many events come in four days; by default these.
    """
    jobs = max(1, round(events / EVENTS_PER_JOB))
    step_us = max(1, round(SPREAD_US * EVENTS_PER_JOB / (density or events)))
    asyncio.run(_lanes(url))
    if urlsplit(url).scheme == "sqlite":
        _sqlite(Path(unquote(urlsplit(url).path.removeprefix("/"))), first, jobs, step_us)
    else:
        asyncio.run(_postgres(url, first, jobs, step_us))
    return jobs


async def _lanes(url: str) -> None:
    """A job in each lane, so that the lanes are there."""
    async with await connect(url) as manager:
        await manager.submit_many(
            [
                JobSpec(type=type_, queue=queue, tenant=tenant, delay_seconds=86_400)
                for tenant in TENANTS
                for queue in QUEUES
                for type_ in TYPES
            ]
        )


def _sqlite(path: Path, first: int, jobs: int, step_us: int) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        lanes = [row[0] for row in connection.execute("SELECT id FROM lanes ORDER BY id")]
        ((base,),) = connection.execute("SELECT coalesce(max(seq), 0) FROM jobs").fetchall()
        for start in range(first, first + jobs, CHUNK_JOBS):
            end = min(start + CHUNK_JOBS, first + jobs)
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                "CREATE TEMP TABLE made AS " + _sqlite_jobs(start, end, base - first + 1)
            )
            connection.execute(
                "CREATE TEMP TABLE lane_of AS SELECT value AS lane, key AS place FROM json_each(?)",
                (str(lanes),),
            )
            for statement in _sqlite_statements(step_us, len(lanes)):
                connection.execute(statement)
            connection.execute("DROP TABLE made")
            connection.execute("DROP TABLE lane_of")
            connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _sqlite_jobs(start: int, end: int, offset: int) -> str:
    return (
        f"WITH RECURSIVE numbers (n) AS (SELECT {start} UNION ALL SELECT n + 1 FROM numbers "
        f"WHERE n + 1 < {end}) SELECT n, n + {offset} AS seq, {_STORY} AS story, "
        "printf('bench-%010d', n) AS id, printf('worker-%d', n % 16) AS worker, "
        "CAST(printf('{\"n\":%d}', n) AS BLOB) AS payload FROM numbers"
    )


def _sqlite_statements(step_us: int, lanes: int) -> list[str]:
    at = f"{FIRST} + made.n * {step_us}"
    joined = f"made JOIN lane_of ON lane_of.place = made.n % {lanes}"
    told = f"(WITH steps ({_STEP_COLUMNS}) AS (VALUES {_STEPS}) SELECT * FROM steps) AS steps"
    last = "steps.step = (CASE made.story WHEN 1 THEN 5 ELSE 3 END) AND steps.story = made.story"
    return [
        (
            "INSERT INTO jobs (seq, id, lane, state, version, run_at, updated_at, attempt, failures, losses,"
            " assignee, assigned_at, scheduled_at, started_at, last_failed_at, finalized_at,"
            " failure_message, failure_category, failure_code, tags, created_at, depth, max_attempts,"
            " lease_seconds)"
            f" SELECT made.seq, made.id, lane_of.lane, steps.after, steps.version, {at} + steps.ready,"
            f" {at} + steps.later, steps.attempt, steps.failures, 0, made.worker,"
            f" {at} + steps.later - steps.run_us, {at} + steps.ready, {at} + 500000,"
            f" CASE WHEN made.story > 0 THEN {at} + 1500000 END, {at} + steps.later,"
            " CASE made.story WHEN 2 THEN 'gone: page ' || made.n WHEN 1 THEN 'busy: try ' || made.n END,"
            " CASE WHEN made.story > 0 THEN 'temporary' END,"
            " CASE made.story WHEN 2 THEN 'HTTP_410' WHEN 1 THEN 'HTTP_503' END,"
            f" '[\"bench\"]', {at}, 0, CASE made.story WHEN 2 THEN 1 ELSE 3 END, 30.0"
            f" FROM {joined} JOIN {told} ON {last}"
        ),
        "INSERT INTO payloads (seq, payload) SELECT seq, payload FROM made",
        (
            "INSERT INTO results (seq, result)"
            " SELECT seq, CAST('{\"ok\":true}' AS BLOB) FROM made WHERE story < 2"
        ),
        "INSERT INTO job_tags (tag, seq) SELECT 'bench', seq FROM made",
        (
            "INSERT INTO events (at, lane, job_seq, job_id, kind, before, after, version, attempt, failures,"
            " losses, run_at, worker, lease_until, category, code, message, wait_us, run_us, payload_bytes,"
            " result_bytes, detail)"
            f" SELECT {at} + steps.later, lane_of.lane, made.seq, made.id, steps.kind, steps.before,"
            f" steps.after, steps.version, steps.attempt, steps.failures, 0, {at} + steps.ready,"
            " CASE WHEN steps.step > 1 THEN made.worker END,"
            f" CASE WHEN steps.kind = 'leased' THEN {at} + steps.later + 30000000 END,"
            " CASE WHEN steps.code IS NOT NULL THEN 'temporary' END, steps.code,"
            " CASE steps.code WHEN 'HTTP_410' THEN 'gone: page ' || made.n"
            " WHEN 'HTTP_503' THEN 'busy: try ' || made.n END,"
            " steps.wait_us, steps.run_us, CASE WHEN steps.step = 1 THEN length(made.payload) END,"
            " CASE WHEN steps.kind = 'completed' THEN 11 END,"
            ' CASE WHEN steps.step = 1 THEN CAST(\'{"tags":["bench"],"max_attempts":\' ||'
            " CASE made.story WHEN 2 THEN 1 ELSE 3 END || '}' AS BLOB) END"
            f" FROM {joined} JOIN {told} ON steps.story = made.story ORDER BY 1, made.n"
        ),
        (
            "UPDATE lanes SET completed = lanes.completed + told.completed, dead = lanes.dead + told.dead,"
            " completed_failures = lanes.completed_failures + told.completed_failures,"
            " dead_failures = lanes.dead_failures + told.dead FROM (SELECT lane_of.lane,"
            " sum(made.story < 2) AS completed, sum(made.story = 2) AS dead,"
            f" sum(made.story = 1) AS completed_failures FROM {joined} GROUP BY lane_of.lane) AS told"
            " WHERE lanes.id = told.lane"
        ),
    ]


async def _postgres(url: str, first: int, jobs: int, step_us: int) -> None:
    found = opening.parse(url, schema="headrace", pool_size=1)
    connection = await asyncpg.connect(found.dsn)
    schema = quote(found.schema)
    lanes = [row[0] for row in await connection.fetch(f"SELECT id FROM {schema}.lanes ORDER BY id")]
    at = f"('epoch'::timestamptz + ({FIRST} + n * {step_us}) * interval '1 microsecond')"
    later = "{} * interval '1 microsecond'".format
    for start in range(first, first + jobs, CHUNK_JOBS):
        end = min(start + CHUNK_JOBS, first + jobs)
        async with connection.transaction():
            await connection.execute(
                f"""
CREATE TEMP TABLE made ON COMMIT DROP AS
SELECT n, nextval('{schema}.job_seqs') AS seq, {_STORY} AS story,
    'bench-' || lpad(n::text, 10, '0') AS id, 'worker-' || n % 16 AS worker, {at} AS at,
    convert_to('{{"n":' || n || '}}', 'UTF8') AS payload,
    (ARRAY{lanes})[n % {len(lanes)} + 1] AS lane
FROM generate_series({start}::bigint, {end - 1}::bigint) AS n;
CREATE TEMP TABLE steps ON COMMIT DROP AS
SELECT * FROM (VALUES {_STEPS}) AS steps ({_STEP_COLUMNS});
INSERT INTO {schema}.bodies (seq, created_at, lease_seconds, lane, depth, id, tags, payload)
SELECT seq, at, 30, lane, 0, id, '{{bench}}', payload FROM made;
INSERT INTO {schema}.job_tags (tag, seq) SELECT 'bench', seq FROM made;
INSERT INTO {schema}.jobs (
    seq, run_at, updated_at, lane, version, attempt, failures, losses, max_attempts, early, state,
    lease_us, assigned_at, scheduled_at, started_at, last_failed_at, finalized_at, assignee,
    failure_category, failure_code, failure_message, result
)
SELECT
    seq, at + {later("ready")}, at + {later("later")}, lane, version, attempt, failures, 0,
    CASE made.story WHEN 2 THEN 1 ELSE 3 END, FALSE, after, 30000000,
    at + {later("(later - run_us)")}, at + {later("ready")}, at + interval '500 ms',
    CASE WHEN made.story > 0 THEN at + interval '1500 ms' END, at + {later("later")}, worker,
    CASE WHEN made.story > 0 THEN 'temporary' END,
    CASE made.story WHEN 2 THEN 'HTTP_410' WHEN 1 THEN 'HTTP_503' END,
    CASE made.story WHEN 2 THEN 'gone: page ' || n WHEN 1 THEN 'busy: try ' || n END,
    CASE WHEN made.story < 2 THEN convert_to('{{"ok":true}}', 'UTF8') END
FROM made
INNER JOIN steps ON steps.story = made.story AND step = CASE made.story WHEN 1 THEN 5 ELSE 3 END;
INSERT INTO {schema}.events (
    at, run_at, job_seq, lane, version, attempt, failures, losses, payload_bytes, result_bytes,
    lease_until, wait_us, run_us, job_id, kind, before, after, worker, category, code, message, detail
)
SELECT
    at + {later("later")} AS happened, at + {later("ready")}, seq, lane, version, attempt, failures, 0,
    CASE WHEN step = 1 THEN length(payload) END, CASE WHEN kind = 'completed' THEN 11 END,
    CASE WHEN kind = 'leased' THEN at + {later("later")} + interval '30 s' END, wait_us, run_us, id,
    kind, before, after, CASE WHEN step > 1 THEN worker END,
    CASE WHEN code IS NOT NULL THEN 'temporary' END, code,
    CASE code WHEN 'HTTP_410' THEN 'gone: page ' || n WHEN 'HTTP_503' THEN 'busy: try ' || n END,
    CASE WHEN step = 1 THEN convert_to('{{"tags":["bench"],"max_attempts":' ||
        CASE made.story WHEN 2 THEN 1 ELSE 3 END || '}}', 'UTF8') END
FROM made
INNER JOIN steps ON steps.story = made.story
ORDER BY happened, n;
"""
            )
    for table in ("jobs", "bodies", "events"):
        await connection.execute(f"VACUUM (ANALYZE) {schema}.{table}")
    await connection.close()
