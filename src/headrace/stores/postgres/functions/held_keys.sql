-- The jobs that hold these keys, with the position of the key in the arguments.
CREATE OR REPLACE FUNCTION headrace.held_keys(
    the_tenants text[],
    the_queues text[],
    the_types text[],
    the_keys text[],
    the_time timestamptz
) RETURNS TABLE ("position" bigint, job_id text)
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
    SELECT
        wanted.position,
        keys.job_id
    FROM unnest(the_tenants, the_queues, the_types, the_keys)
    WITH ORDINALITY AS wanted (tenant, queue, type, key, position)
    INNER JOIN headrace.keys
        ON
            keys.tenant = wanted.tenant
            AND keys.queue = wanted.queue
            AND keys.type = wanted.type
            AND keys.key = wanted.key
    WHERE keys.expires_at IS NULL OR keys.expires_at > the_time;
END;
$$;
