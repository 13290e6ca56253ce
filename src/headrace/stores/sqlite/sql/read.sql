-- fragment: jobs_of_ids
-- CROSS JOIN keeps SQLite from turning the order around: one lookup for each id.
FROM json_each(?) AS wanted
CROSS JOIN jobs ON jobs.id = wanted.value

-- name: seqs_of_ids
-- The seqs of those ids that are stored.
SELECT json_group_array(jobs.seq)
{jobs_of_ids}

-- name: job_rows
-- Whole jobs by seq; each join is a lookup by primary key. The caller puts the rows in order: sorting
-- here would cost a temporary table.
SELECT
    {job.rows}
FROM json_each(?) AS wanted
CROSS JOIN jobs ON jobs.seq = wanted.value
CROSS JOIN payloads ON payloads.seq = jobs.seq
LEFT JOIN results ON results.seq = jobs.seq
LEFT JOIN notes ON notes.seq = jobs.seq

-- fragment: job_has_others
-- A job that has the wanted tags.
NOT EXISTS (
    SELECT 1
    FROM json_each(:others) AS other
    WHERE NOT EXISTS (
        SELECT 1 FROM job_tags WHERE job_tags.tag = other.value AND job_tags.seq = jobs.seq
    )
)

-- fragment: matching
-- What a search asks of a job, but for its tags.
(:lanes IS NULL OR jobs.lane IN (SELECT value FROM json_each(:lanes)))
AND (:states IS NULL OR jobs.state IN (SELECT value FROM json_each(:states)))
AND (:assignee IS NULL OR jobs.assignee = :assignee)
AND (:created_from IS NULL OR jobs.created_at >= :created_from)
AND (:created_before IS NULL OR jobs.created_at < :created_before)
AND (:finalized_before IS NULL OR jobs.finalized_at < :finalized_before)

-- name: find_lanes
-- The lanes that a filter names.
SELECT json_group_array(id)
FROM lanes
WHERE
    (:tenant IS NULL OR tenant = :tenant)
    AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
    AND (:types IS NULL OR type IN (SELECT value FROM json_each(:types)))

-- name: find_among
-- Keep those of a few candidates that match. The caller sorts and cuts: they are few.
SELECT json_group_array(jobs.seq)
FROM json_each(:candidates) AS candidate
CROSS JOIN jobs ON jobs.seq = candidate.value
WHERE
    jobs.seq > :above AND jobs.seq < :below
    AND {job_has_others}
    AND {matching}

-- fragment: walk
-- All jobs in order: for filters that leave many.
SELECT jobs.seq
FROM jobs
WHERE
    jobs.seq > :above AND jobs.seq < :below
    AND {matching}

-- name: find_oldest
SELECT json_group_array(seq)
FROM (
    {walk}
    ORDER BY jobs.seq
    LIMIT :limit
)

-- name: find_newest
SELECT json_group_array(seq)
FROM (
    {walk}
    ORDER BY jobs.seq DESC
    LIMIT :limit
)

-- fragment: tagged_walk
-- The jobs that have the rarest of the wanted tags, in order.
SELECT jobs.seq
FROM job_tags AS driver
CROSS JOIN jobs ON jobs.seq = driver.seq
WHERE
    driver.tag = :tag AND driver.seq > :above AND driver.seq < :below
    AND {job_has_others}
    AND {matching}

-- name: find_tagged_oldest
SELECT json_group_array(seq)
FROM (
    {tagged_walk}
    ORDER BY driver.seq
    LIMIT :limit
)

-- name: find_tagged_newest
SELECT json_group_array(seq)
FROM (
    {tagged_walk}
    ORDER BY driver.seq DESC
    LIMIT :limit
)

-- name: find_claimable
-- Candidates: the claimable jobs of some lanes, from the index alone.
SELECT json_group_array(seq)
FROM (
    SELECT jobs.seq
    FROM json_each(:lanes) AS wanted
    CROSS JOIN jobs INDEXED BY jobs_ready ON jobs.lane = wanted.value
    WHERE {claimable}
    LIMIT :limit
)

-- name: find_blocked
-- Candidates: the blocked jobs of some lanes.
SELECT json_group_array(seq)
FROM (
    SELECT jobs.seq
    FROM json_each(:lanes) AS wanted
    CROSS JOIN jobs INDEXED BY jobs_blocked ON jobs.lane = wanted.value
    WHERE jobs.state = 'blocked'
    LIMIT :limit
)

-- name: find_leased
-- Candidates: leased jobs. There are never more than the workers can hold.
SELECT json_group_array(seq)
FROM (
    SELECT jobs.seq
    FROM jobs INDEXED BY jobs_leased
    WHERE jobs.token IS NOT NULL
    LIMIT :limit
)

-- name: find_ended
-- Candidates: the jobs that ended in one state, before a time if it is given.
SELECT json_group_array(seq)
FROM (
    SELECT jobs.seq
    FROM jobs INDEXED BY jobs_ended
    WHERE
        jobs.state = :state
        AND jobs.finalized_at IS NOT NULL
        AND jobs.finalized_at < coalesce(:finalized_before, 9223372036854775807)
    LIMIT :limit
)

-- name: find_in_lanes
-- Candidates: all jobs of some lanes, from the index alone.
SELECT json_group_array(seq)
FROM (
    SELECT jobs.seq
    FROM json_each(:lanes) AS wanted
    CROSS JOIN jobs INDEXED BY jobs_of_lane ON jobs.lane = wanted.value
    LIMIT :limit
)

-- name: count
-- Every tally of a tenant and queue in one row, from the lanes alone: no job is read.
SELECT
    tenant,
    queue,
    {lane.sums}
FROM lanes
WHERE
    (:tenant IS NULL OR tenant = :tenant)
    AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
GROUP BY tenant, queue

-- name: count_delayed
-- How many claimable jobs of each lane are not due yet, by state: one range of the index per lane.
-- Grouped as the lanes' own index runs, so that nothing is sorted.
SELECT
    lanes.id,
    count(*) FILTER (WHERE jobs.state = 'pending'),
    count(*) FILTER (WHERE jobs.state = 'retrying'),
    count(*) FILTER (WHERE jobs.state = 'lost')
FROM lanes INDEXED BY lanes_claimable
CROSS JOIN jobs INDEXED BY jobs_ready ON jobs.lane = lanes.id
WHERE
    lanes.pending + lanes.retrying + lanes.lost > 0
    AND (:tenant IS NULL OR lanes.tenant = :tenant)
    AND (:queues IS NULL OR lanes.queue IN (SELECT value FROM json_each(:queues)))
    AND {claimable}
    AND jobs.run_at > :now
GROUP BY lanes.queue, lanes.id

-- name: count_tagged
-- Tallies of the jobs that have all of these tags, along the rarest.
SELECT
    lanes.tenant,
    lanes.queue,
    jobs.state,
    count(*),
    count(*) FILTER (
        WHERE jobs.state IN ('pending', 'retrying', 'lost') AND jobs.run_at > :now
    ),
    sum(jobs.failures)
FROM job_tags AS driver
CROSS JOIN jobs ON jobs.seq = driver.seq
CROSS JOIN lanes ON lanes.id = jobs.lane
WHERE
    driver.tag = :tag
    AND {job_has_others}
    AND (:tenant IS NULL OR lanes.tenant = :tenant)
    AND (:queues IS NULL OR lanes.queue IN (SELECT value FROM json_each(:queues)))
GROUP BY lanes.tenant, lanes.queue, jobs.state
ORDER BY lanes.tenant, lanes.queue, jobs.state

-- name: backlog
-- What waits to be started, and the size of its payloads.
SELECT
    count(*),
    coalesce(sum(length(payloads.payload)), 0)
FROM (
    SELECT jobs.seq
    FROM lanes INDEXED BY lanes_claimable
    CROSS JOIN jobs INDEXED BY jobs_ready ON jobs.lane = lanes.id
    WHERE
        lanes.pending + lanes.retrying + lanes.lost > 0
        AND (:tenant IS NULL OR lanes.tenant = :tenant)
        AND (:queue IS NULL OR lanes.queue = :queue)
        AND {claimable}
    UNION ALL
    SELECT jobs.seq
    FROM jobs INDEXED BY jobs_blocked
    CROSS JOIN lanes ON lanes.id = jobs.lane
    WHERE
        jobs.state = 'blocked'
        AND (:tenant IS NULL OR lanes.tenant = :tenant)
        AND (:queue IS NULL OR lanes.queue = :queue)
) AS waiting
CROSS JOIN payloads ON payloads.seq = waiting.seq
