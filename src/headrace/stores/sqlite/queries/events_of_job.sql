-- The events of one job id: of the job that has it, and of those deleted that had it before.
SELECT
    seq, at, lane, job_id, kind, before, after, version, attempt, failures, losses, run_at,
    worker, lease_until, category, code, message,
    wait_us, run_us, payload_bytes, result_bytes, detail
FROM events
WHERE
    job_seq IN (
        SELECT jobs.seq FROM jobs WHERE jobs.id = :job_id
        UNION ALL
        SELECT deleted_jobs.seq FROM deleted_jobs WHERE deleted_jobs.id = :job_id
    )
    AND seq > :after
    AND (:lanes IS NULL OR lane IN (SELECT value FROM json_each(:lanes)))
ORDER BY seq
LIMIT :limit;
