-- Heartbeats: nothing but the lease changes, neither version nor time of update.
UPDATE jobs
SET lease_until = beat.column1
FROM (
    VALUES (?, ?)
) AS beat
WHERE jobs.seq = beat.column2;
