-- The place of the last event; or of the last one that may be read, if the last may not. Where there is none
-- (any more), the place of the last that was trimmed.
CREATE OR REPLACE FUNCTION headrace.log_tail(only_readable boolean)
RETURNS TABLE (last_xid text, last_seq bigint, is_readable boolean)
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
    IF only_readable THEN
        RETURN QUERY
        SELECT
            events.xid::text,
            events.seq,
            TRUE
        FROM headrace.events
        WHERE events.xid < pg_snapshot_xmin(pg_current_snapshot())
        ORDER BY events.xid DESC, events.seq DESC
        LIMIT 1;
    ELSE
        RETURN QUERY
        SELECT
            events.xid::text,
            events.seq,
            events.xid < pg_snapshot_xmin(pg_current_snapshot())
        FROM headrace.events
        ORDER BY events.xid DESC, events.seq DESC
        LIMIT 1;
    END IF;
    IF NOT FOUND THEN
        RETURN QUERY
        SELECT
            log_start.xid::text,
            log_start.seq,
            TRUE
        FROM headrace.log_start;
    END IF;
END;
$$;
