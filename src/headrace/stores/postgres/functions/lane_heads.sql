-- The lanes with due jobs that match: of the early ones and the others each (see pick_jobs) the first, and
-- how many there are, counted up to the limit. A row without a lane at the end has the number of index
-- entries that were read.
CREATE OR REPLACE FUNCTION headrace.lane_heads(
    the_horizon timestamptz, -- up to when a job counts as due
    the_limit integer,
    the_tenant text, -- NULL: any
    the_queues text[], -- NULL: any
    the_types text[], -- NULL: any
    the_tags text[],
    mark_lanes integer[],
    gap_ends integer[],
    mark_run_ats timestamptz[],
    mark_seqs bigint[],
    early_run_ats timestamptz[],
    early_seqs bigint[]
) RETURNS TABLE (lane integer, early boolean, run_at timestamptz, seq bigint, jobs bigint)
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
    walked regclass := CASE
        WHEN driver IS NULL THEN 'headrace.jobs_ready'::regclass
        ELSE 'headrace.ready_tags_pkey'::regclass
    END;
    entries bigint := pg_stat_get_xact_tuples_returned(walked);
BEGIN
    RETURN QUERY
    SELECT
        open_lanes.id,
        head.early,
        head.run_at,
        head.seq,
        head.jobs
    FROM headrace.open_lanes(
        driver, the_tenant, the_queues, the_types, TRUE, mark_lanes, gap_ends, mark_run_ats,
        mark_seqs, early_run_ats, early_seqs
    ) AS open_lanes
    CROSS JOIN LATERAL (
        SELECT
            line.early,
            line.first_run_at AS run_at,
            line.first_seq AS seq,
            count(*) AS jobs
        FROM headrace.due_line(
            driver, the_tags, open_lanes.id, the_horizon, the_limit, open_lanes.mark_run_at,
            open_lanes.mark_seq, open_lanes.early_run_at, open_lanes.early_seq
        ) AS line
        GROUP BY line.early, line.first_run_at, line.first_seq
    ) AS head;
    RETURN QUERY
    SELECT
        NULL::integer,
        NULL::boolean,
        NULL::timestamptz,
        NULL::bigint,
        pg_stat_get_xact_tuples_returned(walked) - entries;
END;
$$;
