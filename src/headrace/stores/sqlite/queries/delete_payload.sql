-- The payloads of deleted jobs.
DELETE FROM payloads WHERE seq IN (SELECT value FROM json_each(?));
