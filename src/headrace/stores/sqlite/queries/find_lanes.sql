-- The lanes that a filter names.
SELECT json_group_array(id)
FROM lanes
WHERE
    (:tenant IS NULL OR tenant = :tenant)
    AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
    AND (:types IS NULL OR type IN (SELECT value FROM json_each(:types)));
