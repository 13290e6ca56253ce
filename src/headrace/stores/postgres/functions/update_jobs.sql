-- Write what an update says of jobs, each if it is still as it was read: priority (the job moves
-- to the lane of that), tags, correlation id, callback url, depth. In the same transaction: events, and tags.
CREATE OR REPLACE FUNCTION headrace.update_jobs(
    seqs bigint[],
    -- the jobs as they were read
    ids text[],
    lanes_before integer[],
    versions_before integer[],
    states_before text[],
    -- and as they are to be
    versions integer[],
    lanes integer[],
    tag_lists text[], -- each a JSON list
    correlation_ids text[],
    callback_urls text[],
    depths integer[],
    -- its event, as far as the job does not tell
    event_ats timestamptz[],
    event_details bytea[]
) RETURNS integer[] -- the positions of the changes that were written
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
    applied integer[];
    written_seqs bigint[];
    tag_names text[];
    tag_seqs bigint[];
    tag_lanes integer[];
    tag_earlies boolean[];
    tag_run_ats timestamptz[];
BEGIN
    -- Lock before anything else, in order of seq, as every change of a job does: nobody claims or changes it
    -- before its tags and its body are written too. The statements below see all that was committed by then.
    PERFORM FROM headrace.jobs
    WHERE jobs.seq = ANY (seqs)
    ORDER BY jobs.seq
    FOR NO KEY UPDATE;
    SELECT
        coalesce(array_agg(read.position::integer), '{}'),
        coalesce(array_agg(read.seq), '{}')
    INTO applied, written_seqs
    FROM unnest(seqs, ids, lanes_before, versions_before, states_before) WITH ORDINALITY
    AS read (seq, id, lane, version, state, position)
    INNER JOIN headrace.jobs ON jobs.seq = read.seq
    INNER JOIN headrace.bodies ON bodies.seq = read.seq AND bodies.id = read.id
    WHERE jobs.lane = read.lane AND jobs.version = read.version AND jobs.state = read.state;

    -- What is to go is listed first and then looked up entry by entry: a join could start anywhere.
    SELECT
        array_agg(had.tag),
        array_agg(jobs.seq),
        array_agg(jobs.lane),
        array_agg(jobs.early),
        array_agg(jobs.run_at)
    INTO tag_names, tag_seqs, tag_lanes, tag_earlies, tag_run_ats
    FROM unnest(written_seqs) AS own (seq)
    INNER JOIN headrace.jobs ON jobs.seq = own.seq
    INNER JOIN headrace.bodies ON bodies.seq = own.seq
    CROSS JOIN LATERAL unnest(bodies.tags) AS had (tag);
    IF tag_names IS NOT NULL THEN
        -- Row by row, for the LIMIT: see lease_jobs.
        DELETE FROM headrace.job_tags
        USING unnest(tag_names, tag_seqs) AS had (tag, seq)
        CROSS JOIN LATERAL (
            SELECT own.ctid AS place
            FROM headrace.job_tags AS own
            WHERE own.tag = had.tag AND own.seq = had.seq
            LIMIT 1
        ) AS found
        WHERE job_tags.ctid = found.place;
        DELETE FROM headrace.ready_tags
        USING unnest(tag_names, tag_lanes, tag_earlies, tag_run_ats, tag_seqs)
        AS had (tag, lane, early, run_at, seq)
        CROSS JOIN LATERAL (
            SELECT line.ctid AS place
            FROM headrace.ready_tags AS line
            WHERE
                line.tag = had.tag
                AND line.lane = had.lane
                AND line.early = had.early
                AND line.run_at = had.run_at
                AND line.seq = had.seq
            LIMIT 1
        ) AS found
        WHERE ready_tags.ctid = found.place;
    END IF;

    UPDATE headrace.bodies SET
        lane = said.lane,
        tags = ARRAY(SELECT jsonb_array_elements_text(said.tags::jsonb)),
        correlation_id = said.correlation_id,
        callback_url = said.callback_url,
        depth = said.depth
    FROM unnest(seqs, lanes, tag_lists, correlation_ids, callback_urls, depths) WITH ORDINALITY
    AS said (seq, lane, tags, correlation_id, callback_url, depth, position)
    WHERE bodies.seq = said.seq AND said.position = ANY (applied);
    WITH written AS (
        UPDATE headrace.jobs SET
            version = said.version,
            lane = said.lane,
            -- It comes into its lane now: at a place that readers of the lane may have passed.
            early = jobs.early OR jobs.run_at
            < greatest(said.at, clock_timestamp() - interval '500 ms')
        FROM unnest(seqs, versions, lanes, event_ats, event_details) WITH ORDINALITY
        AS said (seq, version, lane, at, detail, position)
        WHERE jobs.seq = said.seq AND said.position = ANY (applied)
        RETURNING jobs.*, said.at, said.detail, said.position
    )
    INSERT INTO headrace.events (
        at, run_at, job_seq, lane, version, attempt, failures, losses, lease_until, job_id, kind,
        before, after, worker, detail
    )
    SELECT
        written.at, written.run_at, written.seq, written.lane, written.version,
        written.attempt, written.failures, written.losses, written.lease_until, bodies.id,
        'updated', written.state, written.state, written.assignee, written.detail
    FROM written
    INNER JOIN headrace.bodies ON bodies.seq = written.seq
    ORDER BY written.position;

    INSERT INTO headrace.job_tags (tag, seq)
    SELECT
        has.tag,
        bodies.seq
    FROM unnest(written_seqs) AS own (seq)
    INNER JOIN headrace.bodies ON bodies.seq = own.seq
    CROSS JOIN LATERAL unnest(bodies.tags) AS has (tag);
    INSERT INTO headrace.ready_tags (tag, lane, early, run_at, seq)
    SELECT
        has.tag,
        job.lane,
        job.early,
        job.run_at,
        job.seq
    FROM unnest(written_seqs) AS own (seq)
    CROSS JOIN LATERAL (
        SELECT
            jobs.lane,
            jobs.early,
            jobs.run_at,
            jobs.seq,
            jobs.state
        FROM headrace.jobs
        WHERE jobs.seq = own.seq
        LIMIT 1
    ) AS job
    INNER JOIN headrace.bodies ON bodies.seq = own.seq
    CROSS JOIN LATERAL unnest(bodies.tags) AS has (tag)
    WHERE job.state IN ('pending', 'retrying', 'lost');
    RETURN applied;
END;
$$;
