-- Lock up to `the_limit` due jobs, in the order priority, run_at, seq, for lease_jobs: the query `claim` puts the two
-- together, since rows that pass through one function more are copied once more.
--
-- Cost. Each lane with waiting jobs is probed by its index for at most `the_reach` of them, one priority after
-- the other, so neither jobs that wait behind those nor jobs that are not due yet are ever looked at. A reach
-- beyond the limit leaves room for jobs that another claim has locked just now.
--
-- Marks. A forgotten open transaction keeps every index entry of jobs that have passed through a lane, and
-- a probe from its beginning walks over all of them. `excess` tells the caller how many that were. When
-- they become many, it says from which (run_at, seq) on each lane is worth reading: the first waiting job
-- it saw there. Jobs that become claimable with a due time in the past (given back, lost, unblocked,
-- submitted late) are `early`, and kept apart in the index, because they can appear before such a mark;
-- the others become visible within moments of their due time. How the caller uses that: marks.py.
CREATE OR REPLACE FUNCTION headrace.pick_jobs(
    the_horizon timestamptz, -- up to when a job counts as due
    the_limit integer,
    the_reach integer,
    the_tenant text, -- NULL: any
    the_queues text[], -- NULL: any
    the_types text[], -- NULL: any
    the_tags text[],
    mark_lanes integer[],
    gap_ends integer[],
    mark_run_ats timestamptz[],
    mark_seqs bigint[],
    early_run_ats timestamptz[], -- NULL: only the other mark is known
    early_seqs bigint[],
    OUT picked bigint[], -- NULL: none
    OUT picked_states text[],
    OUT first_run_ats timestamptz[],
    OUT first_seqs bigint[],
    OUT excess bigint,
    OUT cut_short boolean -- others held so many jobs that a longer reach may find more
)
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
    driver text;
    walked regclass := 'headrace.jobs_ready'::regclass;
    entries bigint;
    lane_ids integer[];
    priorities smallint[];
BEGIN
    IF cardinality(the_tags) > 0 THEN
        driver := headrace.rarest_waiting(the_tags);
        walked := 'headrace.ready_tags_pkey'::regclass;
    END IF;
    entries := -pg_stat_get_xact_tuples_returned(walked);

    IF cardinality(mark_lanes) = 1 AND pg_sequence_last_value('headrace.lanes_id_seq') <= 32 THEN
        -- To probe so few lanes costs less than to find out which of them have waiting jobs.
        SELECT
            array_agg(lanes.id),
            array_agg(lanes.priority)
        INTO lane_ids, priorities
        FROM headrace.matching_lanes(
            0, gap_ends[1], the_tenant, the_queues, the_types, FALSE
        ) AS lanes;
    ELSE
        SELECT
            array_agg(lanes.id),
            array_agg(lanes.priority),
            array_agg(lanes.mark_run_at),
            array_agg(lanes.mark_seq),
            array_agg(lanes.early_run_at),
            array_agg(lanes.early_seq)
        INTO lane_ids, priorities, mark_run_ats, mark_seqs, early_run_ats, early_seqs
        FROM headrace.open_lanes(
            driver, the_tenant, the_queues, the_types, FALSE, mark_lanes, gap_ends, mark_run_ats,
            mark_seqs, early_run_ats, early_seqs
        ) AS lanes;
    END IF;
    IF lane_ids IS NULL THEN
        RETURN;
    END IF;

    -- The nesting fixes the order of work: priorities from the top, within one the jobs by (run_at, seq),
    -- each locked as it comes, until there are enough. What another claim holds is passed over. A query
    -- that locks or has a LIMIT is not merged into the one around it, so there is no other way to run this.
    IF driver IS NULL THEN
        WITH candidates AS MATERIALIZED (
            SELECT waiting.*
            FROM generate_series(0, 4) AS level (priority)
            CROSS JOIN LATERAL (
                SELECT line.*
                FROM unnest(
                    lane_ids, priorities, mark_run_ats, mark_seqs, early_run_ats, early_seqs
                ) AS lane (id, priority, mark_run_at, mark_seq, early_run_at, early_seq)
                CROSS JOIN LATERAL headrace.waiting_line(
                    lane.id, the_horizon, the_reach, lane.mark_run_at, lane.mark_seq,
                    lane.early_run_at, lane.early_seq
                ) AS line
                WHERE lane.priority = level.priority
                ORDER BY line.run_at, line.seq
                LIMIT the_reach
            ) AS waiting
        ),
        locked AS MATERIALIZED (
            SELECT
                held.seq,
                held.state,
                candidates.first_run_at,
                candidates.first_seq
            FROM candidates
            CROSS JOIN LATERAL (
                SELECT
                    jobs.seq,
                    jobs.state
                FROM headrace.jobs
                WHERE
                    jobs.seq = candidates.seq
                    AND jobs.run_at = candidates.run_at
                    AND jobs.state IN ('pending', 'retrying', 'lost')
                FOR NO KEY UPDATE SKIP LOCKED
            ) AS held
            LIMIT the_limit
        )
        SELECT
            array_agg(locked.seq),
            array_agg(locked.state),
            array_agg(locked.first_run_at),
            array_agg(locked.first_seq),
            CASE
                WHEN count(*) < the_limit
                    THEN (SELECT count(*) FROM candidates) >= the_reach
                ELSE FALSE
            END
        INTO picked, picked_states, first_run_ats, first_seqs, cut_short
        FROM locked;
    ELSE
        WITH candidates AS MATERIALIZED (
            SELECT waiting.*
            FROM generate_series(0, 4) AS level (priority)
            CROSS JOIN LATERAL (
                SELECT line.*
                FROM unnest(
                    lane_ids, priorities, mark_run_ats, mark_seqs, early_run_ats, early_seqs
                ) AS lane (id, priority, mark_run_at, mark_seq, early_run_at, early_seq)
                CROSS JOIN LATERAL headrace.tagged_line(
                    driver, the_tags, lane.id, the_horizon, the_reach, lane.mark_run_at,
                    lane.mark_seq, lane.early_run_at, lane.early_seq
                ) AS line
                WHERE lane.priority = level.priority
                ORDER BY line.run_at, line.seq
                LIMIT the_reach
            ) AS waiting
        ),
        locked AS MATERIALIZED (
            SELECT
                held.seq,
                held.state,
                candidates.first_run_at,
                candidates.first_seq
            FROM candidates
            CROSS JOIN LATERAL (
                SELECT
                    jobs.seq,
                    jobs.state
                FROM headrace.jobs
                WHERE
                    jobs.seq = candidates.seq
                    AND jobs.run_at = candidates.run_at
                    AND jobs.state IN ('pending', 'retrying', 'lost')
                FOR NO KEY UPDATE SKIP LOCKED
            ) AS held
            LIMIT the_limit
        )
        SELECT
            array_agg(locked.seq),
            array_agg(locked.state),
            array_agg(locked.first_run_at),
            array_agg(locked.first_seq),
            CASE
                WHEN count(*) < the_limit
                    THEN (SELECT count(*) FROM candidates) >= the_reach
                ELSE FALSE
            END
        INTO picked, picked_states, first_run_ats, first_seqs, cut_short
        FROM locked;
    END IF;
    entries := entries + pg_stat_get_xact_tuples_returned(walked);
    excess := entries - 2 * cardinality(lane_ids) * the_reach;
END;
$$;
