-- fragment: claimable
-- As the index on waiting jobs has it, word for word: or SQLite would not see that it serves.
(jobs.state = 'pending' OR jobs.state = 'retrying' OR jobs.state = 'lost')

-- fragment: entry_has_others
-- An entry of `ready_tags` whose job has the wanted tags besides the rarest.
NOT EXISTS (
    SELECT 1
    FROM json_each(:others) AS other
    WHERE NOT EXISTS (
        SELECT 1
        FROM job_tags
        WHERE job_tags.tag = other.value AND job_tags.seq = ready_tags.seq
    )
)

-- name: claim_closed
-- The queues that a plain claim passes over, for one tenant or (NULL) for all: paused or gated. One
-- query, since every claim asks.
SELECT queue, tenant FROM pauses
UNION ALL
SELECT name, NULL FROM records WHERE kind = ?

-- name: claim_lanes
-- The lanes that have claimable jobs, due or not. Lanes that have drained are not even looked at.
SELECT json_group_array(id)
FROM lanes INDEXED BY lanes_claimable
WHERE pending + retrying + lost > 0

-- name: claim_lanes_of_queues
-- As claim_lanes, of some queues: lanes of the others are not even looked at.
SELECT json_group_array(lanes.id)
FROM json_each(?) AS wanted
CROSS JOIN lanes INDEXED BY lanes_claimable ON lanes.queue = wanted.value
WHERE lanes.pending + lanes.retrying + lanes.lost > 0

-- name: claim_queues
-- The queues that have claimable jobs: one step of the index each, however many lanes they have.
WITH RECURSIVE waiting (queue) AS (
    SELECT
        (
            SELECT lanes.queue
            FROM lanes INDEXED BY lanes_claimable
            WHERE lanes.pending + lanes.retrying + lanes.lost > 0
            ORDER BY lanes.queue
            LIMIT 1
        )
    UNION ALL
    SELECT
        (
            SELECT lanes.queue
            FROM lanes INDEXED BY lanes_claimable
            WHERE
                lanes.pending + lanes.retrying + lanes.lost > 0
                AND lanes.queue > waiting.queue
            ORDER BY lanes.queue
            LIMIT 1
        )
    FROM waiting
    WHERE waiting.queue IS NOT NULL
)

SELECT queue FROM waiting WHERE queue IS NOT NULL

-- name: claim_heads
-- The first claimable job of each of these lanes, due or not: one index entry each. As one value,
-- [[[run_at, seq], lane], ...].
SELECT
    json_group_array(
        json_array(
            json(
                (
                    SELECT json_array(jobs.run_at, jobs.seq)
                    FROM jobs INDEXED BY jobs_ready
                    WHERE
                        jobs.lane = wanted.value
                        AND {claimable}
                    ORDER BY jobs.run_at, jobs.seq
                    LIMIT 1
                )
            ),
            wanted.value
        )
    )
FROM json_each(:lanes) AS wanted

-- name: claim_tagged_heads
-- As claim_heads, among the jobs that have the tag. Whether they have the others is not asked.
SELECT
    json_group_array(
        json_array(
            json(
                (
                    SELECT json_array(ready_tags.run_at, ready_tags.seq)
                    FROM ready_tags
                    WHERE ready_tags.tag = :tag AND ready_tags.lane = wanted.value
                    ORDER BY ready_tags.run_at, ready_tags.seq
                    LIMIT 1
                )
            ),
            wanted.value
        )
    )
FROM json_each(:lanes) AS wanted

-- name: claim_due
-- The next due jobs of one lane in claim order, after the last one seen: one range of the index. As
-- one value, [[run_at, seq], ...], since each row would be one more step.
SELECT json_group_array(json_array(run_at, seq))
FROM (
    SELECT jobs.run_at, jobs.seq
    FROM jobs INDEXED BY jobs_ready
    WHERE
        jobs.lane = :lane
        AND {claimable}
        AND jobs.run_at <= :now
        AND (jobs.run_at, jobs.seq) > (:run_at, :seq)
    ORDER BY jobs.run_at, jobs.seq
    LIMIT :limit
)

-- name: claim_tagged_due
-- As claim_due, along the rarest of the wanted tags; the others are looked up one by one.
SELECT json_group_array(json_array(run_at, seq))
FROM (
    SELECT run_at, seq
    FROM ready_tags
    WHERE
        tag = :tag
        AND lane = :lane
        AND run_at <= :now
        AND (run_at, seq) > (:run_at, :seq)
        AND {entry_has_others}
    ORDER BY run_at, seq
    LIMIT :limit
)

-- name: heads
-- The first due job of each of these lanes, and how many are due, counted up to the limit: one range
-- of the index each. As one value, [[[run_at, jobs], lane], ...].
SELECT
    json_group_array(
        json_array(
            json(
                (
                    SELECT json_array(min(due.run_at), count(*))
                    FROM (
                        SELECT jobs.run_at
                        FROM jobs INDEXED BY jobs_ready
                        WHERE
                            jobs.lane = wanted.value
                            AND {claimable}
                            AND jobs.run_at <= :now
                        ORDER BY jobs.run_at, jobs.seq
                        LIMIT :limit
                    ) AS due
                )
            ),
            wanted.value
        )
    )
FROM json_each(:lanes) AS wanted

-- name: heads_tagged
-- As heads, along the rarest of the wanted tags; the others are looked up one by one.
SELECT
    json_group_array(
        json_array(
            json(
                (
                    SELECT json_array(min(due.run_at), count(*))
                    FROM (
                        SELECT ready_tags.run_at
                        FROM ready_tags
                        WHERE
                            ready_tags.tag = :tag
                            AND ready_tags.lane = wanted.value
                            AND ready_tags.run_at <= :now
                            AND {entry_has_others}
                        ORDER BY ready_tags.run_at, ready_tags.seq
                        LIMIT :limit
                    ) AS due
                )
            ),
            wanted.value
        )
    )
FROM json_each(:lanes) AS wanted

-- name: next_due
-- When the next job of these lanes becomes due: one index entry each.
SELECT
    min(
        (
            SELECT jobs.run_at
            FROM jobs INDEXED BY jobs_ready
            WHERE
                jobs.lane = wanted.value
                AND {claimable}
                AND jobs.run_at > :now
            ORDER BY jobs.run_at, jobs.seq
            LIMIT 1
        )
    )
FROM json_each(:lanes) AS wanted

-- name: held
-- How many leases hold now, by lane. As one value, [[lane, jobs], ...].
SELECT json_group_array(json_array(lane, jobs))
FROM (
    SELECT
        lane,
        count(*) AS jobs
    FROM jobs INDEXED BY jobs_leased
    WHERE token IS NOT NULL AND (lease_until IS NULL OR lease_until > :now)
    GROUP BY lane
)
