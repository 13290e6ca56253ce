-- Walk all jobs, oldest first, and keep those that match: for filters that leave many.
SELECT json_group_array(seq)
FROM (
    SELECT jobs.seq
    FROM jobs
    WHERE
        jobs.seq > :above AND jobs.seq < :below
        AND (:lanes IS NULL OR jobs.lane IN (SELECT value FROM json_each(:lanes)))
        AND (:states IS NULL OR jobs.state IN (SELECT value FROM json_each(:states)))
        AND (:assignee IS NULL OR jobs.assignee = :assignee)
        AND (:created_from IS NULL OR jobs.created_at >= :created_from)
        AND (:created_before IS NULL OR jobs.created_at < :created_before)
        AND (:finalized_before IS NULL OR jobs.finalized_at < :finalized_before)
    ORDER BY jobs.seq
    LIMIT :limit
);
