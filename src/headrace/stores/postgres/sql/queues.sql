-- name: pause
INSERT INTO headrace.pauses (queue, tenant, since) VALUES ($1::text, $2::text, $3::timestamptz)
ON CONFLICT DO NOTHING

-- name: resume
DELETE FROM headrace.pauses
WHERE queue = $1::text AND tenant IS NOT DISTINCT FROM $2::text
RETURNING queue

-- name: pauses
SELECT
    queue,
    tenant,
    since
FROM headrace.pauses

-- name: announce
INSERT INTO headrace.workers (worker, seen_at, tenant, queues, types, tags, slots, busy, process)
VALUES ($1::text, $2::timestamptz, $3::text, $4::text[], $5::text[], $6::text[], $7::integer, $8::integer, $9::jsonb)
ON CONFLICT (worker) DO UPDATE SET
    seen_at = excluded.seen_at,
    tenant = excluded.tenant,
    queues = excluded.queues,
    types = excluded.types,
    tags = excluded.tags,
    slots = excluded.slots,
    busy = excluded.busy,
    process = excluded.process

-- name: workers
SELECT
    worker,
    seen_at,
    tenant,
    queues,
    types,
    tags,
    slots,
    busy,
    process::text
FROM headrace.workers
WHERE seen_at >= $1::timestamptz
