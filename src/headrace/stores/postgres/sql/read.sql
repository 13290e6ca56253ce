-- name: get
SELECT * FROM {calls.get_jobs}

-- name: stored_ids
SELECT
    id,
    seq
FROM headrace.bodies
WHERE id = ANY ($1::text[])

-- name: find
SELECT * FROM {calls.find_jobs}

-- name: keyed
SELECT * FROM {calls.held_keys}

-- name: count
SELECT * FROM {calls.count_jobs}

-- name: fold_tallies
SELECT headrace.fold_tallies(TRUE)

-- name: backlog
-- Apart, so that each can be read by its own index. The length of a large payload is known without the payload.
SELECT
    count(*),
    coalesce(sum(octet_length(bodies.payload)), 0)::bigint
FROM (
    SELECT
        jobs.seq,
        jobs.lane
    FROM headrace.jobs
    WHERE jobs.state IN ('pending', 'retrying', 'lost')
    UNION ALL
    SELECT
        jobs.seq,
        jobs.lane
    FROM headrace.jobs
    WHERE jobs.state = 'blocked'
) AS waiting
INNER JOIN headrace.lanes ON lanes.id = waiting.lane
INNER JOIN headrace.bodies ON bodies.seq = waiting.seq
WHERE
    ($1::text IS NULL OR lanes.tenant = $1)
    AND ($2::text IS NULL OR lanes.queue = $2)
