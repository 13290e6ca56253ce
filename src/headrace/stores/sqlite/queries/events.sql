-- The log after a cursor, of one tenant's lanes if they are given.
SELECT
    seq, at, lane, job_id, kind, before, after, version, attempt, failures, losses, run_at,
    worker, lease_until, category, code, message,
    wait_us, run_us, payload_bytes, result_bytes, detail
FROM events
WHERE seq > :after AND (:lanes IS NULL OR lane IN (SELECT value FROM json_each(:lanes)))
ORDER BY seq
LIMIT :limit;
