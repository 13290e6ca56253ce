-- name: pause
-- Pause a queue; a pause that stands already keeps its time.
INSERT INTO pauses (queue, tenant, since) VALUES (?, ?, ?)
ON CONFLICT DO NOTHING

-- name: resume
-- End a pause: that of one tenant, or (NULL) that of all.
DELETE FROM pauses WHERE queue = ? AND tenant IS ?

-- name: pauses
-- All pauses. Every claim asks, so the caller sorts if it needs to.
SELECT queue, tenant, since FROM pauses

-- name: announce
-- A worker asked for jobs: the last time stands.
INSERT OR REPLACE INTO workers (worker, seen_at, tenant, queues, types, tags, slots, busy, process)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: workers
-- Workers that asked at or after a time, by name.
SELECT worker, seen_at, tenant, queues, types, tags, slots, busy, process
FROM workers
WHERE seen_at >= ?
ORDER BY worker
