-- Candidates: the claimable jobs of some lanes, from the index alone.
SELECT json_group_array(seq)
FROM (
    SELECT jobs.seq
    FROM json_each(:lanes) AS wanted
    CROSS JOIN jobs INDEXED BY jobs_ready ON jobs.lane = wanted.value
    WHERE (jobs.state = 'pending' OR jobs.state = 'retrying' OR jobs.state = 'lost')
    LIMIT :limit
);
