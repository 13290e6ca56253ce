-- Candidates: the blocked jobs of some lanes.
SELECT json_group_array(seq)
FROM (
    SELECT jobs.seq
    FROM json_each(:lanes) AS wanted
    CROSS JOIN jobs INDEXED BY jobs_blocked ON jobs.lane = wanted.value
    WHERE jobs.state = 'blocked'
    LIMIT :limit
);
