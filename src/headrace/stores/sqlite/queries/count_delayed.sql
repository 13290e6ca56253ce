-- How many claimable jobs of each lane are not due yet, by state: one range of the index per lane.
-- Grouped as the lanes' own index runs, so that nothing is sorted.
SELECT
    lanes.id,
    count(*) FILTER (WHERE jobs.state = 'pending'),
    count(*) FILTER (WHERE jobs.state = 'retrying'),
    count(*) FILTER (WHERE jobs.state = 'lost')
FROM lanes INDEXED BY lanes_claimable
CROSS JOIN jobs INDEXED BY jobs_ready ON jobs.lane = lanes.id
WHERE
    lanes.pending + lanes.retrying + lanes.lost > 0
    AND (:tenant IS NULL OR lanes.tenant = :tenant)
    AND (:queues IS NULL OR lanes.queue IN (SELECT value FROM json_each(:queues)))
    AND (jobs.state = 'pending' OR jobs.state = 'retrying' OR jobs.state = 'lost')
    AND jobs.run_at > :now
GROUP BY lanes.queue, lanes.id;
