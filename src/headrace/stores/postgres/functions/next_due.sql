-- When the next job of the lanes that match becomes due; NULL: none waits for its time. One index entry per
-- lane: what is due already, and what is left of it in the index, is passed over.
CREATE OR REPLACE FUNCTION headrace.next_due(
    the_time timestamptz,
    the_tenant text, -- NULL: any
    the_queues text[], -- NULL: any
    the_types text[], -- NULL: any
    mark_lanes integer[],
    gap_ends integer[],
    mark_run_ats timestamptz[],
    mark_seqs bigint[],
    early_run_ats timestamptz[],
    early_seqs bigint[]
) RETURNS timestamptz
LANGUAGE plpgsql
STABLE
SET plan_cache_mode = force_generic_plan
-- By index, whatever the statistics say: they may be from a time when the tables were empty.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
BEGIN
    RETURN (
        SELECT min(later.run_at)
        FROM headrace.open_lanes(
            NULL, the_tenant, the_queues, the_types, TRUE, mark_lanes, gap_ends, mark_run_ats,
            mark_seqs, early_run_ats, early_seqs
        ) AS open_lanes
        -- An early job (see pick_jobs) is due, unless the clock was set back since.
        CROSS JOIN (VALUES (FALSE), (TRUE)) AS kind (early)
        CROSS JOIN LATERAL (
            SELECT jobs.run_at
            FROM headrace.jobs
            WHERE
                jobs.lane = open_lanes.id
                AND jobs.early = kind.early
                AND jobs.run_at > the_time
                AND jobs.state IN ('pending', 'retrying', 'lost')
            ORDER BY jobs.run_at, jobs.seq
            LIMIT 1
        ) AS later
    );
END;
$$;
