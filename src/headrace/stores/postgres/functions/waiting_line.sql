-- The due jobs of one lane, the early ones and the others (see pick_jobs): up to so many of each, from their
-- mark on, with the first of their kind. Merged into the query around it.
CREATE OR REPLACE FUNCTION headrace.waiting_line(
    the_lane integer,
    the_time timestamptz,
    the_reach integer,
    mark_run_at timestamptz, -- NULL: the beginning
    mark_seq bigint,
    early_run_at timestamptz,
    early_seq bigint
) RETURNS TABLE (
    run_at timestamptz,
    seq bigint,
    early boolean,
    first_run_at timestamptz,
    first_seq bigint
)
LANGUAGE sql
STABLE
AS $$
SELECT
    head.run_at,
    head.seq,
    TRUE,
    first_value(head.run_at) OVER (ORDER BY head.run_at, head.seq),
    first_value(head.seq) OVER (ORDER BY head.run_at, head.seq)
FROM (
    SELECT
        jobs.run_at,
        jobs.seq
    FROM headrace.jobs
    WHERE
        jobs.lane = the_lane
        AND jobs.early
        AND (jobs.run_at, jobs.seq)
        >= (coalesce(early_run_at, '-infinity'), coalesce(early_seq, 0))
        AND jobs.run_at <= the_time
        AND jobs.state IN ('pending', 'retrying', 'lost')
    ORDER BY jobs.run_at, jobs.seq
    LIMIT the_reach
) AS head
UNION ALL
SELECT
    head.run_at,
    head.seq,
    FALSE,
    first_value(head.run_at) OVER (ORDER BY head.run_at, head.seq),
    first_value(head.seq) OVER (ORDER BY head.run_at, head.seq)
FROM (
    SELECT
        jobs.run_at,
        jobs.seq
    FROM headrace.jobs
    WHERE
        jobs.lane = the_lane
        AND NOT jobs.early
        AND (jobs.run_at, jobs.seq)
        >= (coalesce(mark_run_at, '-infinity'), coalesce(mark_seq, 0))
        AND jobs.run_at <= the_time
        AND jobs.state IN ('pending', 'retrying', 'lost')
    ORDER BY jobs.run_at, jobs.seq
    LIMIT the_reach
) AS head
$$;
