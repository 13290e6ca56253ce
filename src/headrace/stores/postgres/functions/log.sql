-- name: read_events
-- Up to `the_limit` events after the place (after_xid, after_seq), in log order.
-- `is_readable` is false from the first event on that may not be read yet: a transaction that still runs
-- may yet commit one that comes before it. It is NULL in a row that stands for all those that were trimmed: events
-- after the place are gone, and (cursor_xid, seq) is that of the last of them. Then there is no other row.
CREATE OR REPLACE FUNCTION headrace.read_events(
    after_xid xid8, -- NULL: from where the log begins
    after_seq bigint,
    the_tenant text, -- NULL: any
    the_limit integer,
    the_job text -- NULL: all
) RETURNS TABLE (
    cursor_xid text,
    seq bigint,
    at timestamptz,
    lane integer,
    job_id text,
    kind text,
    before text,
    after text,
    version integer,
    attempt integer,
    failures integer,
    losses integer,
    run_at timestamptz,
    worker text,
    lease_until timestamptz,
    category text,
    code text,
    message text,
    wait_us bigint,
    run_us bigint,
    payload_bytes integer,
    result_bytes integer,
    detail bytea,
    is_readable boolean
)
LANGUAGE plpgsql
STABLE
{by_index}
AS $$
#variable_conflict use_column
DECLARE
    from_xid xid8 := coalesce(after_xid, '0'::xid8);
    from_seq bigint := coalesce(after_seq, 0);
    start_xid xid8; -- NULL: nothing was trimmed
    start_seq bigint;
BEGIN
    IF the_job IS NULL THEN
        SELECT log_start.xid, log_start.seq INTO start_xid, start_seq FROM headrace.log_start;
        IF (from_xid, from_seq) < (start_xid, start_seq) THEN
            IF after_xid IS NOT NULL THEN
                cursor_xid := start_xid::text;
                seq := start_seq;
                RETURN NEXT;
                RETURN;
            END IF;
            from_xid := start_xid;
            from_seq := start_seq;
        END IF;
        RETURN QUERY
        SELECT
            {event_rows}
        FROM headrace.events
        WHERE
            {events_wanted};
    ELSE
        RETURN QUERY
        SELECT
            {event_rows}
        FROM (
            SELECT bodies.seq FROM headrace.bodies WHERE bodies.id = the_job
            UNION ALL
            SELECT deleted_jobs.seq FROM headrace.deleted_jobs WHERE deleted_jobs.id = the_job
        ) AS named
        -- OFFSET 0: by the job, never along the whole log for the sake of its order.
        CROSS JOIN LATERAL (
            SELECT * FROM headrace.events WHERE events.job_seq = named.seq OFFSET 0
        ) AS events
        WHERE
            {events_wanted};
    END IF;
END;
$$;

-- fragment: event_rows
events.xid::text,
{event.read},
events.xid < pg_snapshot_xmin(pg_current_snapshot())

-- fragment: events_wanted
(events.xid, events.seq) > (from_xid, from_seq)
AND (
    the_tenant IS NULL
    OR events.lane IN (SELECT lanes.id FROM headrace.lanes WHERE lanes.tenant = the_tenant)
)
ORDER BY events.xid, events.seq
LIMIT the_limit;

-- name: log_begin
-- The place of the last event that was trimmed; no row as long as nothing was. For readers of the view event_log,
-- who must know that what they look for is gone.
CREATE OR REPLACE FUNCTION headrace.log_begin()
RETURNS TABLE (last_xid text, last_seq bigint)
LANGUAGE sql
STABLE
AS $$
    SELECT log_start.xid::text, log_start.seq FROM headrace.log_start;
$$;

-- name: log_tail
-- The place of the last event; or of the last one that may be read, if the last may not. Where there is none
-- (any more), the place of the last that was trimmed.
CREATE OR REPLACE FUNCTION headrace.log_tail(only_readable boolean)
RETURNS TABLE (last_xid text, last_seq bigint, is_readable boolean)
LANGUAGE plpgsql
STABLE
{by_index}
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

-- name: log_has_grown
-- Is there an event after this place that may be read?
CREATE OR REPLACE FUNCTION headrace.log_has_grown(after_xid xid8, after_seq bigint) RETURNS boolean
LANGUAGE plpgsql
STABLE
{by_index}
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

-- name: log_further
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

-- name: log_cuts
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

-- name: trim_log
-- Delete events from the front of the log; how many went. None after the place (upto_xid, upto_seq), none that may
-- not be read yet, none of `before` or later, and no more than `the_limit`. With them goes the way to deleted
-- jobs that have no others. (A job that is deleted at this very moment may keep its way to nothing.)
CREATE OR REPLACE FUNCTION headrace.trim_log(
    upto_xid xid8, -- NULL: up to the end
    upto_seq bigint,
    before timestamptz,
    the_limit integer
) RETURNS integer
LANGUAGE plpgsql
{by_index}
AS $$
#variable_conflict use_column
DECLARE
    start_xid xid8;
    start_seq bigint;
    last_xid xid8;
    last_seq bigint;
    gone integer;
    gone_ids text[];
    gone_seqs bigint[];
BEGIN
    -- What is trimmed must have been counted.
    PERFORM headrace.fold_tallies(FALSE);
    -- One at a time: each begins where the one before it has ended. Readers are not in the way.
    LOCK TABLE headrace.log_start IN SHARE UPDATE EXCLUSIVE MODE;
    SELECT log_start.xid, log_start.seq INTO start_xid, start_seq FROM headrace.log_start;
    start_xid := coalesce(start_xid, '0'::xid8);
    start_seq := coalesce(start_seq, 0);
    SELECT oldest.xid, oldest.seq
    INTO last_xid, last_seq
    FROM (
        SELECT
            front.xid,
            front.seq,
            bool_and(front.at < before) OVER (ORDER BY front.xid, front.seq) AS goes
        FROM (
            SELECT events.xid, events.seq, events.at
            FROM headrace.events
            WHERE
                (events.xid, events.seq) > (start_xid, start_seq)
                AND (upto_xid IS NULL OR (events.xid, events.seq) <= (upto_xid, upto_seq))
                AND events.xid < pg_snapshot_xmin(pg_current_snapshot())
                AND events.xid < (SELECT tally_place.xid FROM headrace.tally_place)
            ORDER BY events.xid, events.seq
            LIMIT the_limit
        ) AS front
    ) AS oldest
    WHERE oldest.goes
    ORDER BY oldest.xid DESC, oldest.seq DESC
    LIMIT 1;
    IF last_xid IS NULL THEN
        RETURN 0;
    END IF;
    WITH trimmed AS (
        DELETE FROM headrace.events
        WHERE
            (events.xid, events.seq) > (start_xid, start_seq)
            AND (events.xid, events.seq) <= (last_xid, last_seq)
        RETURNING events.job_id, events.job_seq
    ), jobs AS (
        SELECT trimmed.job_id, trimmed.job_seq, count(*) AS events
        FROM trimmed
        GROUP BY trimmed.job_id, trimmed.job_seq
    )
    SELECT sum(jobs.events), array_agg(jobs.job_id), array_agg(jobs.job_seq)
    INTO gone, gone_ids, gone_seqs
    FROM jobs;
    DELETE FROM headrace.deleted_jobs
    USING unnest(gone_ids, gone_seqs) AS job (id, seq)
    WHERE
        deleted_jobs.id = job.id
        AND deleted_jobs.seq = job.seq
        AND NOT EXISTS (SELECT FROM headrace.events WHERE events.job_seq = job.seq);
    INSERT INTO headrace.log_start (xid, seq) VALUES (last_xid, last_seq)
    ON CONFLICT ((TRUE)) DO UPDATE SET xid = excluded.xid, seq = excluded.seq;
    RETURN gone;
END;
$$;
