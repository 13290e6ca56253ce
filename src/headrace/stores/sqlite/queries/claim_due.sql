-- The next due jobs of one lane in claim order, after the last one seen: one range of the index.
SELECT run_at, seq
FROM jobs INDEXED BY jobs_ready
WHERE
    lane = :lane
    AND state IN ('pending', 'retrying', 'lost')
    AND run_at <= :now
    AND (run_at, seq) > (:run_at, :seq)
ORDER BY run_at, seq
LIMIT :limit;
