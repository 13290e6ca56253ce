-- The result of a deleted job, if it had one.
DELETE FROM results WHERE seq = ?;
