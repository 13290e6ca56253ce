SELECT
    worker,
    seen_at,
    tenant,
    queues,
    types,
    tags,
    slots,
    busy
FROM headrace.workers
WHERE seen_at >= $1::timestamptz
