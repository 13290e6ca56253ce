-- Hold keys. A row that is there has expired: the writer has looked in the same transaction.
INSERT OR REPLACE INTO keys (
    tenant, queue, type, key, job_id, expires_at, released_when_terminal
)
VALUES (?, ?, ?, ?, ?, ?, ?);
