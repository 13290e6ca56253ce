-- Candidates: all jobs of some lanes, from the index alone.
SELECT json_group_array(seq)
FROM (
    SELECT jobs.seq
    FROM json_each(:lanes) AS wanted
    CROSS JOIN jobs INDEXED BY jobs_of_lane ON jobs.lane = wanted.value
    LIMIT :limit
);
