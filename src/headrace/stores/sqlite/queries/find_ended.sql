-- Candidates: the jobs that ended in one state, before a time if it is given.
SELECT json_group_array(seq)
FROM (
    SELECT jobs.seq
    FROM jobs INDEXED BY jobs_ended
    WHERE
        jobs.state = :state
        AND jobs.finalized_at IS NOT NULL
        AND jobs.finalized_at < coalesce(:finalized_before, 9223372036854775807)
    LIMIT :limit
);
