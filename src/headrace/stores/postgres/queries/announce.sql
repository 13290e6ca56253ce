INSERT INTO headrace.workers (worker, seen_at, tenant, queues, types, tags, slots, busy)
VALUES ($1::text, $2::timestamptz, $3::text, $4::text[], $5::text[], $6::text[], $7::integer, $8::integer)
ON CONFLICT (worker) DO UPDATE SET
    seen_at = excluded.seen_at,
    tenant = excluded.tenant,
    queues = excluded.queues,
    types = excluded.types,
    tags = excluded.tags,
    slots = excluded.slots,
    busy = excluded.busy
