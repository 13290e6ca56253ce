-- Leased jobs whose lease is over, the longest lapsed first.
CREATE OR REPLACE FUNCTION headrace.lapsed_jobs(
    the_time timestamptz,
    the_tenant text, -- NULL: any
    the_limit integer
) RETURNS SETOF headrace.job_rows
LANGUAGE plpgsql
STABLE
SET plan_cache_mode = force_generic_plan
-- By index, whatever the statistics say: they may be from a time when the tables were empty.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT job.*
    FROM headrace.job_rows AS job
    WHERE
        job.state IN ('running', 'cancelling')
        AND job.lease_until <= the_time
        AND (
            the_tenant IS NULL
            OR job.lane IN (SELECT lanes.id FROM headrace.lanes WHERE lanes.tenant = the_tenant)
        )
    ORDER BY job.lease_until, job.seq
    LIMIT the_limit;
END;
$$;
