-- The place of the event that is the `rows`th after one place, if it is not after the other.
CREATE OR REPLACE FUNCTION headrace.log_further(
    after_xid xid8, after_seq bigint, upto_xid xid8, upto_seq bigint, rows bigint
) RETURNS TABLE (place_xid text, place_seq bigint)
LANGUAGE plpgsql
STABLE
SET plan_cache_mode = force_generic_plan
-- By index, whatever the statistics say: they may be from a time when the tables were empty.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $$
BEGIN
    RETURN QUERY
    SELECT events.xid::text, events.seq
    FROM headrace.events
    WHERE
        (events.xid, events.seq) > (after_xid, after_seq)
        AND (events.xid, events.seq) <= (upto_xid, upto_seq)
    ORDER BY events.xid, events.seq
    OFFSET rows - 1
    LIMIT 1;
END;
$$;
