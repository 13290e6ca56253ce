-- When the next job of these lanes becomes due: one index entry each.
SELECT
    min(
        (
            SELECT jobs.run_at
            FROM jobs INDEXED BY jobs_ready
            WHERE
                jobs.lane = wanted.value
                AND (jobs.state = 'pending' OR jobs.state = 'retrying' OR jobs.state = 'lost')
                AND jobs.run_at > :now
            ORDER BY jobs.run_at, jobs.seq
            LIMIT 1
        )
    )
FROM json_each(:lanes) AS wanted;
