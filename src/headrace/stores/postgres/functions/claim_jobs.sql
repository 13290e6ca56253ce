-- Lease up to `the_limit` due jobs, in the order priority, run_at, seq, and log it.
-- What it writes equals lifecycle.apply(job, Claim(...), now), field by field: it must be made here, where
-- picking and leasing are one step. A test compares the two.
--
-- Cost. Each lane is probed by its index for at most `the_reach` jobs, one priority after the other, so
-- neither jobs that wait behind those nor jobs that are not due yet are ever looked at. A reach beyond the
-- limit leaves room for jobs that another claim has locked just now.
--
-- Marks. A forgotten open transaction keeps every index entry of jobs that have passed through a lane, and
-- a probe from its beginning walks over all of them. `excess` tells the caller how many that were. When
-- they become many, it says from which (run_at, seq) on each lane is worth reading: the first waiting job
-- it saw there. Jobs that become claimable with a due time in the past (given back, lost, unblocked,
-- submitted late) are `early`, and kept apart in the index, because they can appear before such a mark;
-- the others become visible within moments of their due time. How the caller uses that: claims.py.
CREATE FUNCTION headrace.claim_jobs(
    the_worker text,
    the_time timestamptz,
    the_limit integer,
    the_reach integer,
    the_nonce text,
    the_tenant text, -- NULL: any
    the_queues text[], -- NULL: any
    the_types text[], -- NULL: any
    the_tags text[],
    own_lease boolean, -- lease until `the_lease`, whatever the job says
    the_lease timestamptz,
    mark_lanes integer[],
    mark_earlies boolean[],
    mark_run_ats timestamptz[],
    mark_seqs bigint[]
) RETURNS TABLE (
    seq bigint,
    id text,
    lane integer,
    state text,
    version integer,
    run_at timestamptz,
    updated_at timestamptz,
    attempt integer,
    failures integer,
    losses integer,
    token text,
    lease_until timestamptz,
    assignee text,
    assigned_at timestamptz,
    scheduled_at timestamptz,
    started_at timestamptz,
    last_failed_at timestamptz,
    finalized_at timestamptz,
    failure_message text,
    failure_category text,
    failure_code text,
    tags text[],
    created_at timestamptz,
    key text,
    previous_id text,
    parent_id text,
    correlation_id text,
    callback_url text,
    depth integer,
    max_attempts integer,
    lease_seconds double precision,
    timeout_seconds double precision,
    expires_at timestamptz,
    backoff bytea,
    payload bytea,
    result bytea,
    progress double precision,
    progress_note text,
    checkpoint bytea,
    early boolean,
    first_run_at timestamptz, -- of the first waiting job of the lane that is as early: a possible mark
    first_seq bigint,
    excess bigint -- index entries that were read and led to no waiting job, at least
)
-- A row without a seq at the end says: others held so many jobs that a longer reach may find more.
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
    picked bigint[];
    picked_states text[];
    first_run_ats timestamptz[];
    first_seqs bigint[];
    cut_short boolean;
    lane_count bigint;
    entries bigint;
BEGIN
    IF cardinality(the_tags) = 0 THEN
        SELECT * INTO picked, picked_states, first_run_ats, first_seqs, cut_short, lane_count, entries
        FROM headrace.pick_waiting(
            the_time, the_limit, the_reach, the_tenant, the_queues, the_types, mark_lanes,
            mark_earlies, mark_run_ats, mark_seqs
        );
    ELSE
        SELECT * INTO picked, picked_states, first_run_ats, first_seqs, cut_short, lane_count, entries
        FROM headrace.pick_tagged(
            the_time, the_limit, the_reach, the_tenant, the_queues, the_types, the_tags, mark_lanes,
            mark_earlies, mark_run_ats, mark_seqs
        );
    END IF;

    IF picked IS NOT NULL THEN
        RETURN QUERY
        WITH leased AS (
            UPDATE headrace.jobs SET
                state = 'running',
                version = jobs.version + 1,
                updated_at = the_time,
                attempt = jobs.attempt + 1,
                token = (jobs.attempt + 1)::text || '.' || the_nonce,
                lease_until = CASE
                    WHEN own_lease THEN the_lease
                    ELSE the_time + jobs.lease_us * interval '1 microsecond'
                END,
                assignee = the_worker,
                assigned_at = the_time,
                scheduled_at = greatest(jobs.run_at, jobs.updated_at),
                started_at = coalesce(jobs.started_at, the_time)
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
                the_time, taken.run_at, taken.seq, taken.lane, taken.version, taken.attempt,
                taken.failures, taken.losses, taken.lease_until,
                (extract(EPOCH FROM the_time - taken.scheduled_at) * 1000000)::bigint,
                taken.id, 'leased', taken.state_before, 'running', the_worker
            FROM taken
            ORDER BY taken.position
        ),
        untagged AS (
            DELETE FROM headrace.ready_tags
            USING taken, unnest(taken.tags) AS had (tag)
            WHERE
                ready_tags.tag = had.tag
                AND ready_tags.lane = taken.lane
                AND ready_tags.early = taken.early
                AND ready_tags.run_at = taken.run_at
                AND ready_tags.seq = taken.seq
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
            taken.progress_note, taken.checkpoint, taken.early, taken.first_run_at,
            taken.first_seq, entries - 2 * lane_count * the_reach
        FROM taken
        ORDER BY taken.position;
    END IF;
    IF cut_short THEN
        seq := NULL;
        RETURN NEXT;
    END IF;
END;
$$;
