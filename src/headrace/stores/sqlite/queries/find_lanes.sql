-- The lanes that a filter names, each with its counts by state: what finding through it would cost.
SELECT
    id,
    blocked,
    pending,
    running,
    cancelling,
    retrying,
    lost,
    completed,
    failed,
    dead,
    cancelled,
    abandoned
FROM lanes
WHERE
    (:tenant IS NULL OR tenant = :tenant)
    AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
    AND (:types IS NULL OR type IN (SELECT value FROM json_each(:types)));
