-- The rows of deleted jobs.
DELETE FROM jobs WHERE seq IN (SELECT value FROM json_each(?));
