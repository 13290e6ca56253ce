-- A lane on its first job.
INSERT INTO lanes (tenant, queue, type, priority, limit_key) VALUES (?, ?, ?, ?, ?);
