SELECT
    id,
    tenant,
    queue,
    type,
    priority
FROM headrace.lanes
WHERE id = ANY ($1::integer[])
