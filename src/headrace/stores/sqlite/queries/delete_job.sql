-- The row of a deleted job.
DELETE FROM jobs WHERE seq = ?;
