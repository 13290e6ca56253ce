-- Lock the next due jobs of the matching lanes, for claim_jobs.
-- The nesting fixes the order of work: priorities from the top, within one the jobs by (run_at, seq), each
-- locked as it comes, until there are enough. What another claim holds is passed over. A query that
-- locks or has a LIMIT is not merged into the one around it, so there is no other way to run this.
CREATE FUNCTION headrace.pick_waiting(
    the_time timestamptz,
    the_limit integer,
    the_reach integer,
    the_tenant text,
    the_queues text[],
    the_types text[],
    mark_lanes integer[],
    mark_earlies boolean[],
    mark_run_ats timestamptz[],
    mark_seqs bigint[],
    OUT picked bigint[],
    OUT picked_states text[],
    OUT first_run_ats timestamptz[],
    OUT first_seqs bigint[],
    OUT cut_short boolean, -- a longer reach may find more
    OUT lane_count bigint,
    OUT entries bigint -- of the index that were read
)
LANGUAGE plpgsql
-- Runs with the settings of claim_jobs.
AS $$
#variable_conflict use_column
BEGIN
    entries := -pg_stat_get_xact_tuples_returned('headrace.jobs_ready'::regclass);
    WITH open_lanes AS MATERIALIZED (
        SELECT
            lanes.id,
            lanes.priority,
            coalesce(mark.run_at, '-infinity') AS mark_run_at,
            coalesce(mark.seq, 0) AS mark_seq,
            coalesce(early_mark.run_at, '-infinity') AS early_run_at,
            coalesce(early_mark.seq, 0) AS early_seq
        FROM headrace.lanes
        LEFT JOIN
            unnest(mark_lanes, mark_earlies, mark_run_ats, mark_seqs)
            AS mark (lane, early, run_at, seq)
            ON mark.lane = lanes.id AND NOT mark.early
        LEFT JOIN
            unnest(mark_lanes, mark_earlies, mark_run_ats, mark_seqs)
            AS early_mark (lane, early, run_at, seq)
            ON early_mark.lane = lanes.id AND early_mark.early
        WHERE
            (the_tenant IS NULL OR lanes.tenant = the_tenant)
            AND (the_queues IS NULL OR lanes.queue = ANY (the_queues))
            AND (the_types IS NULL OR lanes.type = ANY (the_types))
            AND NOT EXISTS (
                SELECT FROM headrace.pauses
                WHERE
                    pauses.queue = lanes.queue
                    AND (pauses.tenant IS NULL OR pauses.tenant = lanes.tenant)
            )
    ),
    candidates AS MATERIALIZED (
        SELECT waiting.*
        FROM generate_series(0, 4) AS level (priority)
        CROSS JOIN LATERAL (
            SELECT line.*
            FROM open_lanes
            CROSS JOIN LATERAL (
                SELECT
                    head.run_at,
                    head.seq,
                    first_value(head.run_at) OVER (ORDER BY head.run_at, head.seq) AS first_run_at,
                    first_value(head.seq) OVER (ORDER BY head.run_at, head.seq) AS first_seq
                FROM (
                    SELECT
                        jobs.run_at,
                        jobs.seq
                    FROM headrace.jobs
                    WHERE
                        jobs.lane = open_lanes.id
                        AND jobs.early
                        AND (jobs.run_at, jobs.seq)
                        >= (open_lanes.early_run_at, open_lanes.early_seq)
                        AND jobs.run_at <= the_time
                        AND jobs.state IN ('pending', 'retrying', 'lost')
                    ORDER BY jobs.run_at, jobs.seq
                    LIMIT the_reach
                ) AS head
                UNION ALL
                SELECT
                    head.run_at,
                    head.seq,
                    first_value(head.run_at) OVER (ORDER BY head.run_at, head.seq),
                    first_value(head.seq) OVER (ORDER BY head.run_at, head.seq)
                FROM (
                    SELECT
                        jobs.run_at,
                        jobs.seq
                    FROM headrace.jobs
                    WHERE
                        jobs.lane = open_lanes.id
                        AND NOT jobs.early
                        AND (jobs.run_at, jobs.seq)
                        >= (open_lanes.mark_run_at, open_lanes.mark_seq)
                        AND jobs.run_at <= the_time
                        AND jobs.state IN ('pending', 'retrying', 'lost')
                    ORDER BY jobs.run_at, jobs.seq
                    LIMIT the_reach
                ) AS head
            ) AS line
            WHERE open_lanes.priority = level.priority
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
        END,
        (SELECT count(*) FROM open_lanes)
    INTO picked, picked_states, first_run_ats, first_seqs, cut_short, lane_count
    FROM locked;
    entries := entries + pg_stat_get_xact_tuples_returned('headrace.jobs_ready'::regclass);
END;
$$;
