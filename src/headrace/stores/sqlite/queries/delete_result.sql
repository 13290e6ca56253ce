-- The results, if any, of deleted jobs.
DELETE FROM results WHERE seq IN (SELECT value FROM json_each(?));
