-- The payload of a deleted job.
DELETE FROM payloads WHERE seq = ?;
