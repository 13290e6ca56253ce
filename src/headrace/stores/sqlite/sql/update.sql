-- name: update_versions
-- Where the jobs that are to be updated stand now.
SELECT
    jobs.id,
    jobs.seq,
    jobs.lane,
    jobs.version,
    jobs.state
{jobs_of_ids}

-- name: update_job
-- What an update says of a job. The writer has compared the version in the same transaction.
UPDATE jobs
SET
    version = ?,
    lane = ?,
    tags = ?,
    correlation_id = ?,
    callback_url = ?,
    depth = ?
WHERE seq = ?

-- name: rewrite_versions
-- Where the jobs that are to be rewritten stand now; leased ones are left out.
SELECT jobs.id, jobs.seq, jobs.version
{jobs_of_ids}
WHERE jobs.token IS NULL

-- name: rewrite_payload
-- Payloads in another form.
UPDATE payloads
SET payload = new.column1
FROM (
    VALUES (?, ?)
) AS new
WHERE payloads.seq = new.column2

-- name: rewrite_failure
-- The messages of failures in another form, where there is a failure.
UPDATE jobs
SET failure_message = new.column1
FROM (
    VALUES (?, ?)
) AS new
WHERE jobs.seq = new.column2 AND jobs.failure_message IS NOT NULL

-- name: delete_job
DELETE FROM jobs WHERE seq IN (SELECT value FROM json_each(?))

-- name: delete_payload
DELETE FROM payloads WHERE seq IN (SELECT value FROM json_each(?))

-- name: delete_result
DELETE FROM results WHERE seq IN (SELECT value FROM json_each(?))

-- name: delete_notes
DELETE FROM notes WHERE seq IN (SELECT value FROM json_each(?))

-- name: delete_logged
-- Which of these jobs still have events.
SELECT json_group_array(wanted.value)
FROM json_each(?) AS wanted
WHERE EXISTS (SELECT 1 FROM events WHERE events.job_seq = wanted.value)

-- name: delete_remember
-- Keep the seqs of deleted jobs, so that their events are still found by id.
INSERT INTO deleted_jobs (id, seq) VALUES (?, ?)
