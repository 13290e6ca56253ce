SELECT
    id,
    tenant,
    queue,
    type,
    priority,
    limit_key
FROM headrace.lanes
WHERE id = ANY ($1::integer[])
