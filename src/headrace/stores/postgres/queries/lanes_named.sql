-- Those without a limit key apart: IS NOT DISTINCT FROM would be no way into the index.
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
        AND lanes.limit_key = wanted.limit_key
UNION ALL
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
WHERE wanted.limit_key IS NULL AND lanes.limit_key IS NULL
