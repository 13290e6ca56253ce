-- As claim_lanes.sql, with the time of the lane's first claimable job that has the tag.
SELECT
    lanes.id,
    lanes.priority,
    (
        SELECT ready_tags.run_at
        FROM ready_tags
        WHERE ready_tags.tag = :tag AND ready_tags.lane = lanes.id
        ORDER BY ready_tags.run_at
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
