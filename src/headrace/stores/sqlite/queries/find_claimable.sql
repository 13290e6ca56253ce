-- Candidates: claimable jobs, from the index alone.
SELECT jobs.seq
FROM jobs INDEXED BY jobs_ready
WHERE
    jobs.state IN ('pending', 'retrying', 'lost')
    AND (:lanes IS NULL OR jobs.lane IN (SELECT value FROM json_each(:lanes)))
LIMIT :limit;
