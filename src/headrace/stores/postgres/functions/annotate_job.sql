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
SET plan_cache_mode = force_generic_plan
-- By index, whatever the statistics say: they may be from a time when the tables were empty.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
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
