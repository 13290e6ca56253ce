INSERT INTO headrace.workers (worker, seen_at, tenant, queues, types, tags)
VALUES ($1::text, $2::timestamptz, $3::text, $4::text[], $5::text[], $6::text[])
ON CONFLICT (worker) DO UPDATE SET
    seen_at = excluded.seen_at,
    tenant = excluded.tenant,
    queues = excluded.queues,
    types = excluded.types,
    tags = excluded.tags
