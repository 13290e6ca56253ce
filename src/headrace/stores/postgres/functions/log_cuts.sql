-- Places that cut the log between two others into pieces of about `rows` events, or into so many `parts`.
-- Sequence numbers are given nearly in the order of transactions, so they tell about how many events lie
-- between two places. For each cut, the last transaction that begins before its number is sought by halving;
-- the cut is made inside it, so that one huge transaction is cut up, too. Transactions that ran at the same
-- time make pieces uneven, never wrong: every place is a good cut.
CREATE OR REPLACE FUNCTION headrace.log_cuts(
    after_xid xid8,
    after_seq bigint,
    upto_xid xid8,
    upto_seq bigint,
    rows bigint,
    parts integer -- NULL: as many as the rows make
) RETURNS TABLE (cut_xid bigint, cut_seq bigint)
LANGUAGE plpgsql
STABLE
SET plan_cache_mode = force_generic_plan
-- By index, whatever the statistics say: they may be from a time when the tables were empty.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $$
DECLARE
    first_xid bigint;
    first_seq bigint;
    found_xid bigint;
    found_seq bigint;
    low bigint;
    high bigint;
    middle bigint;
    pieces bigint;
BEGIN
    SELECT events.xid::text::bigint, events.seq INTO first_xid, first_seq
    FROM headrace.events
    WHERE (events.xid, events.seq) > (after_xid, after_seq)
    ORDER BY events.xid, events.seq
    LIMIT 1;
    pieces := coalesce(parts, (upto_seq - first_seq + rows) / rows);
    low := first_xid;
    FOR piece IN 1..coalesce(pieces - 1, 0) LOOP
        cut_seq := first_seq - 1 + (upto_seq - first_seq + 1) * piece / pieces;
        -- Invariant: `low` begins at or before the cut, `high` after it.
        high := upto_xid::text::bigint + 1;
        WHILE high - low > 1 LOOP
            middle := low + (high - low) / 2;
            SELECT events.xid::text::bigint, events.seq INTO found_xid, found_seq
            FROM headrace.events
            WHERE (events.xid, events.seq) >= (middle::text::xid8, 0)
            ORDER BY events.xid, events.seq
            LIMIT 1;
            IF found_xid < high AND found_seq <= cut_seq THEN
                low := found_xid;
            ELSE
                high := middle;
            END IF;
        END LOOP;
        cut_xid := low;
        RETURN NEXT;
    END LOOP;
END;
$$;
