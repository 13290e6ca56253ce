-- name: lanes_add
-- In order, so that two processes that add the same lanes never wait for each other.
INSERT INTO headrace.lanes (tenant, queue, type, priority, limit_key)
SELECT
    new.tenant,
    new.queue,
    new.type,
    new.priority,
    new.limit_key
FROM unnest($1::text[], $2::text[], $3::text[], $4::smallint[], $5::text[])
AS new (tenant, queue, type, priority, limit_key)
ORDER BY new.tenant, new.queue, new.type, new.priority, new.limit_key
ON CONFLICT DO NOTHING

-- name: lanes_named
-- Those without a limit key apart: IS NOT DISTINCT FROM would be no way into the index.
{lanes_wanted}
WHERE lanes.limit_key = wanted.limit_key
UNION ALL
{lanes_wanted}
WHERE wanted.limit_key IS NULL AND lanes.limit_key IS NULL

-- fragment: lanes_wanted
SELECT
    lanes.id,
    lanes.tenant,
    lanes.queue,
    lanes.type,
    lanes.priority,
    lanes.limit_key
FROM unnest($1::text[], $2::text[], $3::text[], $4::smallint[], $5::text[])
AS wanted (tenant, queue, type, priority, limit_key)
INNER JOIN headrace.lanes
    ON
        lanes.tenant = wanted.tenant
        AND lanes.queue = wanted.queue
        AND lanes.type = wanted.type
        AND lanes.priority = wanted.priority

-- name: lanes_numbered
SELECT
    id,
    tenant,
    queue,
    type,
    priority,
    limit_key
FROM headrace.lanes
WHERE id = ANY ($1::integer[])

-- name: lanes_matching
SELECT id
FROM headrace.lanes
WHERE
    ($1::text IS NULL OR tenant = $1)
    AND ($2::text[] IS NULL OR queue = ANY ($2))
    AND ($3::text[] IS NULL OR type = ANY ($3))
