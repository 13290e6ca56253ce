-- Those that exist.
CREATE OR REPLACE FUNCTION headrace.get_jobs(the_ids text[]) RETURNS SETOF headrace.job_rows
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
    SELECT job.* FROM headrace.job_rows AS job WHERE job.id = ANY (the_ids);
END;
$$;
