-- name: edges_from
SELECT
    parent_id,
    child_id,
    kind,
    outcome,
    seen
FROM headrace.edges
WHERE parent_id = $1::text AND ($2::text IS NULL OR child_id = $2)
ORDER BY ord

-- name: edges_into
SELECT
    parent_id,
    child_id,
    kind,
    outcome,
    seen
FROM headrace.edges
WHERE child_id = $1::text
ORDER BY ord

-- name: unseen
SELECT
    parent_id,
    child_id,
    kind,
    outcome,
    seen
FROM headrace.edges
WHERE outcome IS NOT NULL AND NOT seen
ORDER BY ord
LIMIT $1::integer

-- name: joins
SELECT * FROM {calls.joins_into}

-- name: spawned
SELECT * FROM {calls.spawned_jobs}
