-- The notes, if any, of deleted jobs.
DELETE FROM notes WHERE seq IN (SELECT value FROM json_each(?));
