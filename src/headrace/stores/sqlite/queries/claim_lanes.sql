-- The lanes a claim may take from, each with the time of its first claimable job, due or not.
-- Only lanes with claimable jobs are read, and one index entry of each.
SELECT
    lanes.id,
    lanes.priority,
    (
        SELECT jobs.run_at
        FROM jobs
        WHERE jobs.lane = lanes.id AND jobs.state IN ('pending', 'retrying', 'lost')
        ORDER BY jobs.run_at
        LIMIT 1
    )
FROM lanes INDEXED BY lanes_claimable
WHERE
    pending + retrying + lost > 0
    AND (:tenant IS NULL OR lanes.tenant = :tenant)
    AND (:queues IS NULL OR lanes.queue IN (SELECT value FROM json_each(:queues)))
    AND (:types IS NULL OR lanes.type IN (SELECT value FROM json_each(:types)))
    AND NOT EXISTS (
        SELECT 1
        FROM pauses
        WHERE
            pauses.queue = lanes.queue
            AND (pauses.tenant IS NULL OR pauses.tenant = lanes.tenant)
    );
