-- Is there an event after this place that may be read?
CREATE OR REPLACE FUNCTION headrace.log_has_grown(after_xid xid8, after_seq bigint) RETURNS boolean
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
    RETURN EXISTS (
        SELECT FROM headrace.events
        WHERE
            (events.xid, events.seq) > (after_xid, after_seq)
            AND events.xid < pg_snapshot_xmin(pg_current_snapshot())
    );
END;
$$;
