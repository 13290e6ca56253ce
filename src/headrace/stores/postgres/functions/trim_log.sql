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
SET plan_cache_mode = force_generic_plan
-- By index, whatever the statistics say: they may be from a time when the tables were empty.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
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
