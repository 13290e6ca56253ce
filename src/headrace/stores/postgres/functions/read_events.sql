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
SET plan_cache_mode = force_generic_plan
-- By index, whatever the statistics say: they may be from a time when the tables were empty.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
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
            events.xid::text,
            events.seq,
            events.at,
            events.lane,
            events.job_id,
            events.kind,
            events.before,
            events.after,
            events.version,
            events.attempt,
            events.failures,
            events.losses,
            events.run_at,
            events.worker,
            events.lease_until,
            events.category,
            events.code,
            events.message,
            events.wait_us,
            events.run_us,
            events.payload_bytes,
            events.result_bytes,
            events.detail,
            events.xid < pg_snapshot_xmin(pg_current_snapshot())
        FROM headrace.events
        WHERE
            (events.xid, events.seq) > (from_xid, from_seq)
            AND (
                the_tenant IS NULL
                OR events.lane IN (SELECT lanes.id FROM headrace.lanes WHERE lanes.tenant = the_tenant)
            )
        ORDER BY events.xid, events.seq
        LIMIT the_limit;
    ELSE
        RETURN QUERY
        SELECT
            events.xid::text,
            events.seq,
            events.at,
            events.lane,
            events.job_id,
            events.kind,
            events.before,
            events.after,
            events.version,
            events.attempt,
            events.failures,
            events.losses,
            events.run_at,
            events.worker,
            events.lease_until,
            events.category,
            events.code,
            events.message,
            events.wait_us,
            events.run_us,
            events.payload_bytes,
            events.result_bytes,
            events.detail,
            events.xid < pg_snapshot_xmin(pg_current_snapshot())
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
            (events.xid, events.seq) > (from_xid, from_seq)
            AND (
                the_tenant IS NULL
                OR events.lane IN (SELECT lanes.id FROM headrace.lanes WHERE lanes.tenant = the_tenant)
            )
        ORDER BY events.xid, events.seq
        LIMIT the_limit;
    END IF;
END;
$$;
