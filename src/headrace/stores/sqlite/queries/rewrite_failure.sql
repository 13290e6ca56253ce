-- The messages of failures in another form, where there is a failure.
UPDATE jobs
SET failure_message = new.column1
FROM (
    VALUES (?, ?)
) AS new
WHERE jobs.seq = new.column2 AND jobs.failure_message IS NOT NULL;
