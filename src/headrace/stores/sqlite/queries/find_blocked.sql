-- Candidates: blocked jobs, from the index alone.
SELECT jobs.seq
FROM jobs INDEXED BY jobs_blocked
WHERE
    jobs.state = 'blocked'
    AND (:lanes IS NULL OR jobs.lane IN (SELECT value FROM json_each(:lanes)))
LIMIT :limit;
