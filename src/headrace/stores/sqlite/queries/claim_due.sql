-- The next due jobs of one lane in claim order, after the last one seen: one range of the index. As
-- one value, [[run_at, seq], ...], since each row would be one more step.
SELECT json_group_array(json_array(run_at, seq))
FROM (
    SELECT run_at, seq
    FROM jobs INDEXED BY jobs_ready
    WHERE
        lane = :lane
        AND (state = 'pending' OR state = 'retrying' OR state = 'lost')
        AND run_at <= :now
        AND (run_at, seq) > (:run_at, :seq)
    ORDER BY run_at, seq
    LIMIT :limit
);
