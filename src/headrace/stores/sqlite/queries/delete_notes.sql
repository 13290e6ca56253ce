-- The notes of a deleted job, if it had any.
DELETE FROM notes WHERE seq = ?;
