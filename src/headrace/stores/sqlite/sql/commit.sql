-- name: commit_versions
-- Where the jobs of a commit stand now: `commit._Standing` each. As one value, since each row would be one
-- more step.
SELECT
    json_group_array(
        json_array(
            jobs.id, jobs.seq, jobs.lease_until, jobs.lane, json_array({job.compared})
        )
    )
FROM json_each(?) AS wanted
CROSS JOIN jobs ON jobs.seq = wanted.value

-- name: job_change
-- Job rows after changes, in the order of `rows.change_columns`. The writer has compared the
-- versions in the same transaction.
UPDATE jobs
SET
    {job.changed_by_list}
FROM (
    VALUES ({job.change_marks}, ?)
) AS new
WHERE jobs.seq = {job.change_seq}

-- name: job_change_one
-- As job_change for a single row: joining a list, however short, costs SQLite a temporary table.
UPDATE jobs
SET
    {job.changed}
WHERE seq = ?

-- name: result_set
-- The results that changes brought.
INSERT INTO results (seq, result) VALUES (?, ?)
ON CONFLICT (seq) DO UPDATE SET result = excluded.result
