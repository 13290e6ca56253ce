-- How many leases on these queues hold, by tenant, queue and limit key. Reads the leased jobs and no others.
CREATE OR REPLACE FUNCTION headrace.held_leases(the_time timestamptz, the_queues text[])
RETURNS TABLE (tenant text, queue text, limit_key text, jobs bigint)
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
    WITH held AS MATERIALIZED (
        SELECT
            jobs.lane,
            count(*) AS jobs
        FROM headrace.jobs
        WHERE
            jobs.state IN ('running', 'cancelling')
            AND (jobs.lease_until IS NULL OR jobs.lease_until > the_time)
        GROUP BY jobs.lane
    )
    SELECT
        lanes.tenant,
        lanes.queue,
        lanes.limit_key,
        sum(held.jobs)::bigint
    FROM held
    INNER JOIN headrace.lanes ON lanes.id = held.lane
    WHERE lanes.queue = ANY (the_queues)
    GROUP BY lanes.tenant, lanes.queue, lanes.limit_key;
END;
$$;
