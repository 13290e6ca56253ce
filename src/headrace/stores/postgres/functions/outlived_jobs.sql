-- Jobs that have not ended though their lifetime has, the oldest first.
CREATE OR REPLACE FUNCTION headrace.outlived_jobs(
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
        job.finalized_at IS NULL
        AND job.expires_at IS NOT NULL
        AND job.expires_at <= the_time
        AND (
            the_tenant IS NULL
            OR job.lane IN (SELECT lanes.id FROM headrace.lanes WHERE lanes.tenant = the_tenant)
        )
    ORDER BY job.expires_at, job.seq
    LIMIT the_limit;
END;
$$;
