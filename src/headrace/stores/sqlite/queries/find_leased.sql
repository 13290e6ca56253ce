-- Candidates: leased jobs. There are never more than the workers can hold.
SELECT json_group_array(seq)
FROM (
    SELECT jobs.seq
    FROM jobs INDEXED BY jobs_leased
    WHERE jobs.token IS NOT NULL
    LIMIT :limit
);
