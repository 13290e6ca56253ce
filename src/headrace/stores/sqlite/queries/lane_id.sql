-- The lane of a key, if there is one.
SELECT id
FROM lanes
WHERE tenant = ? AND queue = ? AND type = ? AND priority = ? AND limit_key IS ?;
