-- Lease up to so many due jobs of each of these lanes, in the order of the shares, and store the gates with
-- their new bodies, if all gates are as they were read. Whoever else claims by one of the gates waits here
-- for its row, so there is always one at a time behind a gate. What it leases is what a claim leases.
CREATE OR REPLACE FUNCTION headrace.claim_shares(
    the_worker text,
    the_time timestamptz,
    the_limit integer,
    the_reach integer, -- look at so many more, in place of jobs that others hold
    the_nonce text,
    the_tenant text, -- NULL: any
    the_queues text[], -- NULL: any
    the_types text[], -- NULL: any
    the_tags text[],
    own_lease boolean, -- lease until `the_lease`, whatever the job says
    the_lease timestamptz,
    gate_kinds text[],
    gate_names text[],
    gate_versions bigint[],
    gate_bodies bytea[],
    share_lanes integer[],
    share_jobs integer[],
    -- one element per share, NULL: read its lane from the beginning; see pick_jobs
    mark_run_ats timestamptz[],
    mark_seqs bigint[],
    early_run_ats timestamptz[],
    early_seqs bigint[],
    the_horizon timestamptz -- up to when a job counts as due
) RETURNS SETOF headrace.claimed_job
-- One row without a seq says: a gate had moved on, and nothing was written.
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
    driver text := headrace.rarest_waiting(the_tags);
    picked bigint[];
    picked_states text[];
    moved_on headrace.claimed_job;
BEGIN
    IF cardinality(gate_names) > 0
        AND NOT headrace.put_records(gate_kinds, gate_names, gate_versions, gate_bodies)
    THEN
        RETURN NEXT moved_on;
        RETURN;
    END IF;
    -- The nesting fixes the order of work: see pick_jobs. A lane may come more than once: its later shares
    -- go over what the earlier ones have locked.
    WITH shares AS MATERIALIZED (
        SELECT
            share.lane,
            share.jobs,
            sum(share.jobs) OVER (PARTITION BY share.lane ORDER BY share.position)
            - share.jobs AS jobs_before,
            share.mark_run_at,
            share.mark_seq,
            share.early_run_at,
            share.early_seq
        FROM unnest(
            share_lanes, share_jobs, mark_run_ats, mark_seqs, early_run_ats, early_seqs
        ) WITH ORDINALITY AS share (
            lane, jobs, mark_run_at, mark_seq, early_run_at, early_seq, position
        )
        CROSS JOIN LATERAL headrace.matching_lanes(
            share.lane, share.lane + 1, the_tenant, the_queues, the_types, TRUE
        )
        ORDER BY share.position
    ),
    locked AS MATERIALIZED (
        SELECT
            mine.seq,
            mine.state
        FROM shares
        CROSS JOIN LATERAL (
            SELECT
                held.seq,
                held.state
            FROM (
                SELECT
                    line.run_at,
                    line.seq
                FROM headrace.due_line(
                    driver, the_tags, shares.lane, the_horizon,
                    least(shares.jobs_before + shares.jobs + the_reach, 2147483647)::integer,
                    shares.mark_run_at, shares.mark_seq, shares.early_run_at, shares.early_seq
                ) AS line
                ORDER BY line.run_at, line.seq
            ) AS waiting
            CROSS JOIN LATERAL (
                SELECT
                    jobs.seq,
                    jobs.state
                FROM headrace.jobs
                WHERE
                    jobs.seq = waiting.seq
                    AND jobs.run_at = waiting.run_at
                    AND jobs.state IN ('pending', 'retrying', 'lost')
                FOR NO KEY UPDATE SKIP LOCKED
            ) AS held
            LIMIT shares.jobs
            OFFSET shares.jobs_before
        ) AS mine
        LIMIT the_limit
    )
    SELECT
        array_agg(locked.seq),
        array_agg(locked.state)
    INTO picked, picked_states
    FROM locked;
    IF picked IS NOT NULL THEN
        RETURN QUERY
        SELECT *
        FROM headrace.lease_jobs(
            picked, picked_states, '{}', '{}', the_worker, the_time, the_nonce, own_lease, the_lease,
            NULL, FALSE
        );
    END IF;
END;
$$;
