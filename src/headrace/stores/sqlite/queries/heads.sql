-- The first due job of each of these lanes, and how many are due, counted up to the limit: one range
-- of the index each. As one value, [[[run_at, jobs], lane], ...].
SELECT
    json_group_array(
        json_array(
            json(
                (
                    SELECT json_array(min(due.run_at), count(*))
                    FROM (
                        SELECT jobs.run_at
                        FROM jobs INDEXED BY jobs_ready
                        WHERE
                            jobs.lane = wanted.value
                            AND (
                                jobs.state = 'pending'
                                OR jobs.state = 'retrying'
                                OR jobs.state = 'lost'
                            )
                            AND jobs.run_at <= :now
                        ORDER BY jobs.run_at, jobs.seq
                        LIMIT :limit
                    ) AS due
                )
            ),
            wanted.value
        )
    )
FROM json_each(:lanes) AS wanted;
