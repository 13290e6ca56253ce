-- Tallies of the jobs that have all of these tags, along the rarest.
SELECT
    lanes.tenant,
    lanes.queue,
    jobs.state,
    count(*),
    count(*) FILTER (
        WHERE jobs.state IN ('pending', 'retrying', 'lost') AND jobs.run_at > :now
    ),
    sum(jobs.failures)
FROM job_tags AS driver
CROSS JOIN jobs ON jobs.seq = driver.seq
CROSS JOIN lanes ON lanes.id = jobs.lane
WHERE
    driver.tag = :tag
    AND NOT EXISTS (
        SELECT 1
        FROM json_each(:others) AS other
        WHERE NOT EXISTS (
            SELECT 1 FROM job_tags WHERE job_tags.tag = other.value AND job_tags.seq = jobs.seq
        )
    )
    AND (:tenant IS NULL OR lanes.tenant = :tenant)
    AND (:queues IS NULL OR lanes.queue IN (SELECT value FROM json_each(:queues)))
GROUP BY lanes.tenant, lanes.queue, jobs.state
ORDER BY lanes.tenant, lanes.queue, jobs.state;
