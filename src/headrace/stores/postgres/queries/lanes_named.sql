SELECT
    lanes.id,
    lanes.tenant,
    lanes.queue,
    lanes.type,
    lanes.priority
FROM unnest($1::text[], $2::text[], $3::text[], $4::smallint[]) AS wanted (tenant, queue, type, priority)
INNER JOIN headrace.lanes
    ON
        lanes.tenant = wanted.tenant
        AND lanes.queue = wanted.queue
        AND lanes.type = wanted.type
        AND lanes.priority = wanted.priority
