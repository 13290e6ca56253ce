-- What an update says of a job. The writer has compared the version in the same transaction.
UPDATE jobs
SET
    version = ?,
    lane = ?,
    tags = ?,
    correlation_id = ?,
    callback_url = ?,
    depth = ?
WHERE seq = ?;
