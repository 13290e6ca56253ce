-- name: insert_last_seq
-- The last seq given to a job, 0 before the first; it stays when the job is deleted.
SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'jobs'

-- name: insert_ids_stored
-- Which of these ids are stored already.
SELECT jobs.id
{jobs_of_ids}

-- name: insert_parents
-- Where the parents named by an insertion stand now.
SELECT jobs.id, jobs.state
{jobs_of_ids}

-- name: insert_kin
-- Around which jobs the graph is not as an insertion took it to be. Each: [id, version, the most edges into
-- it, who may wait for it by FAN_IN, what it may have spawned], NULL for what does not matter.
WITH wanted AS (
    SELECT
        json_extract(value, '$[0]') AS id,
        json_extract(value, '$[1]') AS version,
        json_extract(value, '$[2]') AS parents_max,
        json_extract(value, '$[3]') AS joins,
        json_extract(value, '$[4]') AS spawned
    FROM json_each(?)
)

SELECT wanted.id
FROM wanted
WHERE
    (
        wanted.version IS NOT NULL
        AND NOT EXISTS (
            SELECT 1 FROM jobs WHERE jobs.id = wanted.id AND jobs.version = wanted.version
        )
    )
    OR (
        wanted.parents_max IS NOT NULL
        AND (SELECT count(*) FROM edges WHERE edges.child_id = wanted.id) > wanted.parents_max
    )
    OR (
        wanted.joins IS NOT NULL
        AND EXISTS (
            SELECT 1 FROM edges
            WHERE
                edges.parent_id = wanted.id
                AND edges.kind = 'fan_in'
                AND edges.child_id NOT IN (SELECT value FROM json_each(wanted.joins))
        )
    )
    OR (
        wanted.spawned IS NOT NULL
        AND EXISTS (
            SELECT 1 FROM jobs
            WHERE
                jobs.parent_id = wanted.id
                AND jobs.id NOT IN (SELECT value FROM json_each(wanted.spawned))
        )
    )

-- name: job_add
-- The rows of new jobs, in the order of `rows.insert_columns`.
INSERT INTO jobs (
    {job.inserted}
)
VALUES
({job.marks})

-- name: payload_add
-- The payloads of new jobs: written once.
INSERT INTO payloads (seq, payload) VALUES (?, ?)
