-- Walk the jobs that have the rarest of the wanted tags, newest first.
SELECT json_group_array(seq)
FROM (
    SELECT jobs.seq
    FROM job_tags AS driver
    CROSS JOIN jobs ON jobs.seq = driver.seq
    WHERE
        driver.tag = :tag AND driver.seq > :above AND driver.seq < :below
        AND NOT EXISTS (
            SELECT 1
            FROM json_each(:others) AS other
            WHERE NOT EXISTS (
                SELECT 1 FROM job_tags WHERE job_tags.tag = other.value AND job_tags.seq = jobs.seq
            )
        )
        AND (:lanes IS NULL OR jobs.lane IN (SELECT value FROM json_each(:lanes)))
        AND (:states IS NULL OR jobs.state IN (SELECT value FROM json_each(:states)))
        AND (:assignee IS NULL OR jobs.assignee = :assignee)
        AND (:created_from IS NULL OR jobs.created_at >= :created_from)
        AND (:created_before IS NULL OR jobs.created_at < :created_before)
        AND (:finalized_before IS NULL OR jobs.finalized_at < :finalized_before)
    ORDER BY driver.seq DESC
    LIMIT :limit
);
