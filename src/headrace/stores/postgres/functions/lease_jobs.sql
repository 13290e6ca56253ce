-- Lease the jobs that a claim has locked, in this order, and log it.
-- What it writes equals lifecycle.apply(job, Claim(...), now), field by field: it must be made here, where
-- picking and leasing are one step. A test compares the two.
CREATE OR REPLACE FUNCTION headrace.lease_jobs(
    picked bigint[],
    picked_states text[],
    first_run_ats timestamptz[], -- these and the excess are only passed on
    first_seqs bigint[],
    the_worker text,
    the_time timestamptz,
    the_nonce text,
    own_lease boolean, -- lease until `the_lease`, whatever the job says
    the_lease timestamptz,
    the_excess bigint,
    cut_short boolean -- say so by a row without a seq at the end
) RETURNS SETOF headrace.claimed_job
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
-- By index, whatever the statistics say: they may be from a time when the tables were empty.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    answer headrace.claimed_job;
BEGIN
    IF picked IS NOT NULL THEN
        RETURN QUERY
        WITH leased AS (
            UPDATE headrace.jobs SET
                state = 'running',
                version = jobs.version + 1,
                updated_at = greatest(the_time, jobs.updated_at), -- a job's own time never runs back
                attempt = jobs.attempt + 1,
                token = (jobs.attempt + 1)::text || '.' || the_nonce,
                lease_until = CASE
                    WHEN own_lease THEN the_lease
                    ELSE the_time + jobs.lease_us * interval '1 microsecond'
                END + CASE
                    -- no lease counts from a clock that was set back since (clock.STEP_SECONDS)
                    WHEN jobs.updated_at - the_time > interval '5 seconds' THEN interval '0'
                    ELSE greatest(the_time, jobs.updated_at) - the_time
                END,
                assignee = the_worker,
                assigned_at = greatest(the_time, jobs.updated_at),
                -- a job that is claimed ahead of its time has not waited
                scheduled_at = least(
                    greatest(jobs.run_at, jobs.updated_at), greatest(the_time, jobs.updated_at)
                ),
                started_at = coalesce(jobs.started_at, greatest(the_time, jobs.updated_at))
            FROM
                unnest(picked, picked_states, first_run_ats, first_seqs)
                WITH ORDINALITY AS pick (seq, state, first_run_at, first_seq, position)
            WHERE jobs.seq = pick.seq
            RETURNING
                jobs.*,
                pick.position,
                pick.state AS state_before,
                pick.first_run_at,
                pick.first_seq
        ),
        taken AS MATERIALIZED (
            SELECT
                leased.*,
                bodies.id,
                bodies.tags,
                bodies.created_at,
                bodies.key,
                bodies.previous_id,
                bodies.parent_id,
                bodies.correlation_id,
                bodies.callback_url,
                bodies.depth,
                bodies.lease_seconds,
                bodies.timeout_seconds,
                bodies.backoff,
                bodies.payload
            FROM leased
            INNER JOIN headrace.bodies ON bodies.seq = leased.seq
        ),
        logged AS (
            INSERT INTO headrace.events (
                at, run_at, job_seq, lane, version, attempt, failures, losses, lease_until,
                wait_us, job_id, kind, before, after, worker
            )
            SELECT
                taken.updated_at, taken.run_at, taken.seq, taken.lane, taken.version, taken.attempt,
                taken.failures, taken.losses, taken.lease_until,
                (extract(EPOCH FROM taken.updated_at - taken.scheduled_at) * 1000000)::bigint,
                taken.id, 'leased', taken.state_before, 'running', the_worker
            FROM taken
            ORDER BY taken.position
        ),
        untagged AS (
            -- Row by row, for the LIMIT: where statistics say that there are hardly any, a join would begin
            -- with all of them.
            DELETE FROM headrace.ready_tags
            USING taken
            CROSS JOIN LATERAL unnest(taken.tags) AS had (tag)
            CROSS JOIN LATERAL (
                SELECT line.ctid AS place
                FROM headrace.ready_tags AS line
                WHERE
                    line.tag = had.tag
                    AND line.lane = taken.lane
                    AND line.early = taken.early
                    AND line.run_at = taken.run_at
                    AND line.seq = taken.seq
                LIMIT 1
            ) AS found
            WHERE taken.tags <> '{}' AND ready_tags.ctid = found.place
        )
        SELECT
            taken.seq, taken.id, taken.lane, taken.state, taken.version, taken.run_at,
            taken.updated_at, taken.attempt, taken.failures, taken.losses, taken.token,
            taken.lease_until, taken.assignee, taken.assigned_at, taken.scheduled_at,
            taken.started_at, taken.last_failed_at, taken.finalized_at, taken.failure_message,
            taken.failure_category, taken.failure_code, taken.tags, taken.created_at, taken.key,
            taken.previous_id, taken.parent_id, taken.correlation_id, taken.callback_url,
            taken.depth, taken.max_attempts, taken.lease_seconds, taken.timeout_seconds,
            taken.expires_at, taken.backoff, taken.payload, taken.result, taken.progress,
            taken.progress_note, taken.checkpoint, taken.log, taken.early, taken.first_run_at,
            taken.first_seq, the_excess
        FROM taken
        ORDER BY taken.position;
    END IF;
    IF cut_short THEN
        RETURN NEXT answer;
    END IF;
END;
$$;
