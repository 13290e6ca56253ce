-- Replace contents by the same contents in another form, of each job that is still at this version and not
-- leased. NULL leaves what is there; a failure's message is replaced only where there is a failure.
CREATE OR REPLACE FUNCTION headrace.rewrite_jobs(
    the_ids text[],
    the_versions integer[],
    the_payloads bytea[],
    the_results bytea[],
    the_checkpoints bytea[],
    the_logs bytea[],
    the_messages text[]
) RETURNS bigint[] -- the seqs, in order; NULL: it was left alone
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
    seqs bigint[];
BEGIN
    -- Where a job stands is locked first, in order of seq, as every change of it does: nobody claims or
    -- changes it before its body is written too. The next statement sees all that was committed by then.
    PERFORM FROM headrace.jobs
    WHERE jobs.seq = ANY (ARRAY(SELECT bodies.seq FROM headrace.bodies WHERE bodies.id = ANY (the_ids)))
    ORDER BY jobs.seq
    FOR NO KEY UPDATE;
    SELECT array_agg(present.seq ORDER BY read.position) INTO seqs
    FROM unnest(the_ids, the_versions) WITH ORDINALITY AS read (id, version, position)
    LEFT JOIN LATERAL (
        SELECT jobs.seq
        FROM headrace.bodies
        INNER JOIN headrace.jobs ON jobs.seq = bodies.seq
        WHERE bodies.id = read.id AND jobs.version = read.version AND jobs.token IS NULL
    ) AS present ON TRUE;
    UPDATE headrace.jobs SET
        result = coalesce(new.result, jobs.result),
        checkpoint = coalesce(new.checkpoint, jobs.checkpoint),
        log = coalesce(new.log, jobs.log),
        failure_message = CASE
            WHEN jobs.failure_message IS NOT NULL THEN coalesce(new.message, jobs.failure_message)
        END
    FROM unnest(seqs, the_results, the_checkpoints, the_logs, the_messages)
    AS new (seq, result, checkpoint, log, message)
    WHERE
        jobs.seq = new.seq
        AND num_nonnulls(new.result, new.checkpoint, new.log, new.message) > 0;
    UPDATE headrace.bodies SET payload = new.payload
    FROM unnest(seqs, the_payloads) AS new (seq, payload)
    WHERE bodies.seq = new.seq AND new.payload IS NOT NULL;
    RETURN seqs;
END;
$$;
