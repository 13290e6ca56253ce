-- How many claimable jobs of each lane and state are not due yet: one range of the index per lane.
SELECT lanes.tenant, lanes.queue, jobs.state, count(*)
FROM lanes INDEXED BY lanes_claimable
CROSS JOIN jobs INDEXED BY jobs_ready ON jobs.lane = lanes.id
WHERE
    lanes.pending + lanes.retrying + lanes.lost > 0
    AND (:tenant IS NULL OR lanes.tenant = :tenant)
    AND (:queues IS NULL OR lanes.queue IN (SELECT value FROM json_each(:queues)))
    AND jobs.state IN ('pending', 'retrying', 'lost')
    AND jobs.run_at > :now
GROUP BY lanes.tenant, lanes.queue, jobs.state;
