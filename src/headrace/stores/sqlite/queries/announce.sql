-- A worker asked for jobs: the last time stands.
INSERT OR REPLACE INTO workers (worker, seen_at, tenant, queues, types, tags, slots, busy)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);
