-- The first claimable job of each of these lanes, due or not: one index entry each. As one value,
-- [[[run_at, seq], lane], ...].
SELECT
    json_group_array(
        json_array(
            json(
                (
                    SELECT json_array(jobs.run_at, jobs.seq)
                    FROM jobs INDEXED BY jobs_ready
                    WHERE
                        jobs.lane = wanted.value
                        AND (
                            jobs.state = 'pending' OR jobs.state = 'retrying' OR jobs.state = 'lost'
                        )
                    ORDER BY jobs.run_at, jobs.seq
                    LIMIT 1
                )
            ),
            wanted.value
        )
    )
FROM json_each(:lanes) AS wanted;
