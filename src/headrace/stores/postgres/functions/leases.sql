-- name: lease_holds
-- Whether a lease goes on: what lifecycle.lease_holds says. It ends with the job's lifetime and with the
-- attempt's execution timeout at the latest.
CREATE OR REPLACE FUNCTION headrace.lease_holds(
    the_time timestamptz,
    lease_until timestamptz,
    expires_at timestamptz,
    assigned_at timestamptz,
    timeout_seconds double precision
) RETURNS boolean
LANGUAGE sql
STABLE
AS $$
SELECT
    coalesce(lease_until > the_time, TRUE)
    AND coalesce(expires_at > the_time, TRUE)
    AND coalesce(assigned_at + make_interval(secs => timeout_seconds) >= the_time, TRUE);
$$;

-- name: extend_leases
-- Locked in order of seq before they are written, so that two batches never wait for each other in
-- opposite directions. Only lease_until changes: no index is written.
CREATE OR REPLACE FUNCTION headrace.extend_leases(
    the_ids text[],
    the_tokens text[],
    the_untils timestamptz[],
    the_time timestamptz
) RETURNS TABLE (id text, state text, lease_until timestamptz)
LANGUAGE plpgsql
{by_index}
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH held AS MATERIALIZED (
        SELECT
            jobs.seq,
            wanted.id,
            wanted.lease_until
        FROM unnest(the_ids, the_tokens, the_untils) AS wanted (id, token, lease_until)
        INNER JOIN headrace.bodies ON bodies.id = wanted.id
        INNER JOIN headrace.jobs ON jobs.seq = bodies.seq
        WHERE
            jobs.token = wanted.token
            AND headrace.lease_holds(
                the_time, jobs.lease_until, jobs.expires_at, jobs.assigned_at, bodies.timeout_seconds
            )
        ORDER BY jobs.seq
        FOR NO KEY UPDATE OF jobs
    )
    UPDATE headrace.jobs SET lease_until = held.lease_until
    FROM held
    WHERE jobs.seq = held.seq
    RETURNING held.id, jobs.state, jobs.lease_until;
END;
$$;

-- name: annotate_job
-- Write what a worker says of a job it holds, if the lease holds. NULL leaves what is there.
CREATE OR REPLACE FUNCTION headrace.annotate_job(
    the_id text,
    the_token text,
    new_progress double precision,
    new_note text,
    new_checkpoint bytea,
    new_log bytea,
    the_time timestamptz
) RETURNS boolean
LANGUAGE plpgsql
{by_index}
AS $$
#variable_conflict use_column
BEGIN
    UPDATE headrace.jobs SET
        progress = coalesce(new_progress, jobs.progress),
        progress_note = coalesce(new_note, jobs.progress_note),
        checkpoint = coalesce(new_checkpoint, jobs.checkpoint),
        log = coalesce(new_log, jobs.log)
    FROM headrace.bodies
    WHERE
        bodies.id = the_id
        AND jobs.seq = bodies.seq
        AND jobs.token = the_token
        AND headrace.lease_holds(
            the_time, jobs.lease_until, jobs.expires_at, jobs.assigned_at, bodies.timeout_seconds
        );
    RETURN FOUND;
END;
$$;

-- name: lapsed_jobs
-- Leased jobs whose lease is over, the longest lapsed first.
CREATE OR REPLACE FUNCTION headrace.lapsed_jobs({over_since}
        job.state IN ('running', 'cancelling')
        AND job.lease_until <= the_time
        AND {of_tenant}
    ORDER BY job.lease_until, job.seq
    LIMIT the_limit;
END;
$$;

-- name: outlived_jobs
-- Jobs that have not ended though their lifetime has, the oldest first.
CREATE OR REPLACE FUNCTION headrace.outlived_jobs({over_since}
        job.finalized_at IS NULL
        AND job.expires_at IS NOT NULL
        AND job.expires_at <= the_time
        AND {of_tenant}
    ORDER BY job.expires_at, job.seq
    LIMIT the_limit;
END;
$$;

-- fragment: over_since
the_time timestamptz,
    the_tenant text, -- NULL: any
    the_limit integer
) RETURNS SETOF headrace.job_rows
LANGUAGE plpgsql
STABLE
{by_index}
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT job.*
    FROM headrace.job_rows AS job
    WHERE

-- fragment: of_tenant
(
    the_tenant IS NULL
    OR job.lane IN (SELECT lanes.id FROM headrace.lanes WHERE lanes.tenant = the_tenant)
)
