-- How many jobs there are, by lane and state: in all, of those not due yet, and the sum of their failures.
-- Reads every job or, with tags, every job that has the rarest of them.
CREATE OR REPLACE FUNCTION headrace.count_jobs(
    the_time timestamptz,
    the_lanes integer[], -- NULL: all
    the_tags text[]
) RETURNS TABLE (lane integer, state text, jobs bigint, delayed bigint, failures bigint)
LANGUAGE plpgsql
-- Planned for the lanes that are given: there may be thousands of them.
SET plan_cache_mode = force_custom_plan
AS $$
#variable_conflict use_column
DECLARE
    driver text := (headrace.rarest_first(the_tags))[1];
BEGIN
    IF cardinality(the_tags) = 0 THEN
        RETURN QUERY
        SELECT
            jobs.lane,
            jobs.state,
            count(*),
            count(*) FILTER (
                WHERE jobs.run_at > the_time AND jobs.state IN ('pending', 'retrying', 'lost')
            ),
            sum(jobs.failures)
        FROM headrace.jobs
        WHERE the_lanes IS NULL OR jobs.lane = ANY (the_lanes)
        GROUP BY jobs.lane, jobs.state;
    ELSE
        RETURN QUERY
        SELECT
            jobs.lane,
            jobs.state,
            count(*),
            count(*) FILTER (
                WHERE jobs.run_at > the_time AND jobs.state IN ('pending', 'retrying', 'lost')
            ),
            sum(jobs.failures)
        FROM headrace.job_tags
        INNER JOIN headrace.bodies ON bodies.seq = job_tags.seq
        INNER JOIN headrace.jobs ON jobs.seq = job_tags.seq
        WHERE
            job_tags.tag = driver
            AND bodies.tags @> the_tags
            AND (the_lanes IS NULL OR jobs.lane = ANY (the_lanes))
        GROUP BY jobs.lane, jobs.state;
    END IF;
END;
$$;
