-- Jobs whose lifetime is over and that have not ended, the oldest first: one range of the index.
SELECT json_group_array(seq)
FROM (
    SELECT seq
    FROM jobs INDEXED BY jobs_lifetime
    WHERE
        finalized_at IS NULL
        AND expires_at IS NOT NULL
        AND expires_at <= :now
        AND (
            :tenant IS NULL
            OR :tenant = (SELECT lanes.tenant FROM lanes WHERE lanes.id = jobs.lane)
        )
    ORDER BY expires_at, seq
    LIMIT :limit
);
