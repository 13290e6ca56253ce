-- Locked in order of seq before they are written, so that two batches never wait for each other in
-- opposite directions. Only lease_until changes: no index is written.
CREATE OR REPLACE FUNCTION headrace.extend_leases(
    the_ids text[],
    the_tokens text[],
    the_untils timestamptz[],
    the_time timestamptz
) RETURNS TABLE (id text, state text, lease_until timestamptz)
LANGUAGE plpgsql
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
            jobs.seq,
            wanted.id,
            wanted.lease_until
        FROM unnest(the_ids, the_tokens, the_untils) AS wanted (id, token, lease_until)
        INNER JOIN headrace.bodies ON bodies.id = wanted.id
        INNER JOIN headrace.jobs ON jobs.seq = bodies.seq
        WHERE
            jobs.token = wanted.token
            AND headrace.lease_holds(
                the_time, jobs.lease_until, jobs.expires_at, jobs.assigned_at, bodies.timeout_seconds
            )
        ORDER BY jobs.seq
        FOR NO KEY UPDATE OF jobs
    )
    UPDATE headrace.jobs SET lease_until = held.lease_until
    FROM held
    WHERE jobs.seq = held.seq
    RETURNING held.id, jobs.state, jobs.lease_until;
END;
$$;
