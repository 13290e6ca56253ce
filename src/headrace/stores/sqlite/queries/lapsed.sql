-- Leased jobs whose lease has lapsed, the longest lapsed first: one range of the index.
SELECT json_group_array(seq)
FROM (
    SELECT seq
    FROM jobs INDEXED BY jobs_leased
    WHERE
        token IS NOT NULL
        AND lease_until <= :now
        AND (
            :tenant IS NULL
            OR :tenant = (SELECT lanes.tenant FROM lanes WHERE lanes.id = jobs.lane)
        )
    ORDER BY lease_until, seq
    LIMIT :limit
);
