-- Workers that asked at or after a time, by name.
SELECT worker, seen_at, tenant, queues, types, tags, slots, busy
FROM workers
WHERE seen_at >= ?
ORDER BY worker;
