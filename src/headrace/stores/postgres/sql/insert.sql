-- name: insert
SELECT {calls.insert_jobs}

-- name: insert_kin
SELECT {calls.grown_kin}

-- name: insert_alone
-- One new job and its event, with nothing to be looked at first: what insert_jobs does, without its arrays.
WITH given AS (SELECT {alone.values}),
new AS MATERIALIZED (
    SELECT
        given.*,
        nextval('headrace.job_seqs') AS seq,
        {is_early} AS early
    FROM given
),
in_bodies AS (INSERT INTO headrace.bodies ({fresh.bodies}) SELECT {fresh.bodies.values} FROM new),
in_jobs AS (INSERT INTO headrace.jobs ({fresh.jobs}) SELECT {fresh.jobs.values} FROM new),
in_events AS (INSERT INTO headrace.events ({fresh.events}) SELECT {fresh.events.values} FROM new),
told AS MATERIALIZED (
    SELECT pg_notify({alone.channel}, {alone.sender}) WHERE {alone.channel} IS NOT NULL
)
SELECT new.seq
FROM new
LEFT JOIN told ON TRUE

-- fragment: is_early
given.run_at < greatest(given.created_at, clock_timestamp() - interval '500 ms')

-- name: notify_too
-- As a part of what it tells of.
SELECT pg_notify($1::text, $2::text)
