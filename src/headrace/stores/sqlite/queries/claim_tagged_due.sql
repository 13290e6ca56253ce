-- As claim_due.sql, along the rarest of the wanted tags; the others are looked up one by one.
SELECT json_group_array(json_array(run_at, seq))
FROM (
    SELECT run_at, seq
    FROM ready_tags
    WHERE
        tag = :tag
        AND lane = :lane
        AND run_at <= :now
        AND (run_at, seq) > (:run_at, :seq)
        AND NOT EXISTS (
            SELECT 1
            FROM json_each(:others) AS other
            WHERE NOT EXISTS (
                SELECT 1
                FROM job_tags
                WHERE job_tags.tag = other.value AND job_tags.seq = ready_tags.seq
            )
        )
    ORDER BY run_at, seq
    LIMIT :limit
);
