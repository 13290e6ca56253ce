-- What waits to be started, and the size of its payloads.
SELECT
    count(*),
    coalesce(sum(length(payloads.payload)), 0)
FROM (
    SELECT jobs.seq
    FROM lanes INDEXED BY lanes_claimable
    CROSS JOIN jobs INDEXED BY jobs_ready ON jobs.lane = lanes.id
    WHERE
        lanes.pending + lanes.retrying + lanes.lost > 0
        AND (:tenant IS NULL OR lanes.tenant = :tenant)
        AND (:queue IS NULL OR lanes.queue = :queue)
        AND (jobs.state = 'pending' OR jobs.state = 'retrying' OR jobs.state = 'lost')
    UNION ALL
    SELECT jobs.seq
    FROM jobs INDEXED BY jobs_blocked
    CROSS JOIN lanes ON lanes.id = jobs.lane
    WHERE
        jobs.state = 'blocked'
        AND (:tenant IS NULL OR lanes.tenant = :tenant)
        AND (:queue IS NULL OR lanes.queue = :queue)
) AS waiting
CROSS JOIN payloads ON payloads.seq = waiting.seq;
