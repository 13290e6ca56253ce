-- name: lease
-- The lease of one job, and what else may end it.
SELECT seq, token, lease_until, expires_at, assigned_at, timeout_seconds FROM jobs WHERE id = ?

-- name: extend_leases
-- The leases that heartbeats name, and what else may end them.
SELECT
    jobs.id, jobs.state, jobs.seq, jobs.token, jobs.lease_until, jobs.expires_at, jobs.assigned_at,
    jobs.timeout_seconds
{jobs_of_ids}

-- name: extend
-- Heartbeats: nothing but the lease changes, neither version nor time of update.
UPDATE jobs
SET lease_until = beat.column1
FROM (
    VALUES (?, ?)
) AS beat
WHERE jobs.seq = beat.column2

-- name: annotate
-- Notes: what is not said (NULL) stays as it is.
INSERT INTO notes (seq, progress, progress_note, checkpoint, log) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (seq) DO UPDATE
SET
    progress = coalesce(excluded.progress, progress),
    progress_note = coalesce(excluded.progress_note, progress_note),
    checkpoint = coalesce(excluded.checkpoint, checkpoint),
    log = coalesce(excluded.log, log)

-- fragment: of_tenant
(
    :tenant IS NULL
    OR :tenant = (SELECT lanes.tenant FROM lanes WHERE lanes.id = jobs.lane)
)

-- name: lapsed
-- Leased jobs whose lease has lapsed, the longest lapsed first: one range of the index.
SELECT json_group_array(seq)
FROM (
    SELECT seq
    FROM jobs INDEXED BY jobs_leased
    WHERE
        token IS NOT NULL
        AND lease_until <= :now
        AND {of_tenant}
    ORDER BY lease_until, seq
    LIMIT :limit
)

-- name: outlived
-- Jobs whose lifetime is over and that have not ended, the oldest first: one range of the index.
SELECT json_group_array(seq)
FROM (
    SELECT seq
    FROM jobs INDEXED BY jobs_lifetime
    WHERE
        finalized_at IS NULL
        AND expires_at IS NOT NULL
        AND expires_at <= :now
        AND {of_tenant}
    ORDER BY expires_at, seq
    LIMIT :limit
)
