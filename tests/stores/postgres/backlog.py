"""Large backlogs, made by the server itself: a million jobs in seconds, rows as a submission writes them."""

from __future__ import annotations

from typing import Any

from headrace.stores.postgres import PostgresStore

RARE = "rare"
COMMON = "common"

_FILL = """
WITH new AS MATERIALIZED (
    SELECT
        nextval('{schema}.job_seqs') AS seq,
        n,
        clock_timestamp() + $4::interval AS run_at,
        CASE
            WHEN $5::integer > 0 AND n % $5 = 0 THEN '{{common,rare}}'::text[]
            WHEN $5::integer > 0 THEN '{{common}}'::text[]
            ELSE '{{}}'::text[]
        END AS tags
    FROM generate_series(1, $1::integer) AS n
),
lane AS (
    INSERT INTO {schema}.lanes (tenant, queue, type, priority)
    VALUES ('default', $2::text, 'fill', $3::smallint)
    ON CONFLICT (tenant, queue, type, priority, limit_key) DO UPDATE SET tenant = excluded.tenant
    RETURNING id
),
bodies AS (
    INSERT INTO {schema}.bodies (seq, created_at, lane, depth, id, tags, payload, lease_seconds)
    SELECT seq, run_at, lane.id, 0, 'fill-' || seq, tags, '{{"i": 1}}', 30 FROM new, lane
),
tags AS (
    INSERT INTO {schema}.job_tags (tag, seq) SELECT tag, seq FROM new, unnest(tags) AS tag
),
ready AS (
    INSERT INTO {schema}.ready_tags (tag, lane, early, run_at, seq)
    SELECT tag, lane.id, FALSE, run_at, seq FROM new, lane, unnest(tags) AS tag
)
INSERT INTO {schema}.jobs (
    seq, run_at, updated_at, lane, version, attempt, failures, losses, max_attempts, early, state,
    lease_us, expires_at
)
SELECT
    seq, run_at, run_at, lane.id, 1, 0, 0, 0, 3, FALSE, 'pending', 30000000,
    clock_timestamp() + interval '7 days'
FROM new, lane
"""


async def fill(
    store: PostgresStore,
    jobs: int,
    *,
    queue: str = "default",
    priority: int = 2,
    due: str = "-1 minute",
    rare_every: int = 0,
    analyze: bool = True,
) -> None:
    """That many waiting jobs, `due` from now; every n-th has the tag RARE, if any (and all COMMON)."""
    schema = store._sql.quoted_schema
    async with store._pool.connection() as connection:
        await connection.execute("SET synchronous_commit = off")
        await connection.fetch(
            _FILL.format(schema=schema),
            jobs,
            queue,
            priority,
            _interval(due),
            rare_every,
            timeout=600,
        )
        if analyze:
            for table in ("bodies", "jobs", "ready_tags", "job_tags", "events"):
                await connection.execute(f"VACUUM ANALYZE {schema}.{table}", timeout=600)
        await connection.execute("RESET synchronous_commit")


def _interval(text: str) -> Any:
    """asyncpg wants a duration, and texts read better in a test."""
    from datetime import timedelta

    number, unit = text.split()
    return timedelta(**{f"{unit.rstrip('s')}s": float(number)})
