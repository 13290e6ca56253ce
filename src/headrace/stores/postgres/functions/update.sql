-- name: update_jobs
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
{by_index}
AS $$
#variable_conflict use_column
DECLARE
    applied integer[];
    job_seqs bigint[];
    {tag_variables};
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
    INTO applied, job_seqs
    FROM unnest(seqs, ids, lanes_before, versions_before, states_before) WITH ORDINALITY
    AS read (seq, id, lane, version, state, position)
    INNER JOIN headrace.jobs ON jobs.seq = read.seq
    INNER JOIN headrace.bodies ON bodies.seq = read.seq AND bodies.id = read.id
    WHERE jobs.lane = read.lane AND jobs.version = read.version AND jobs.state = read.state;

    {take_tags_off};

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
    FROM unnest(job_seqs) AS own (seq)
    INNER JOIN headrace.bodies ON bodies.seq = own.seq
    CROSS JOIN LATERAL unnest(bodies.tags) AS has (tag);
    INSERT INTO headrace.ready_tags (tag, lane, early, run_at, seq)
    SELECT
        has.tag,
        job.lane,
        job.early,
        job.run_at,
        job.seq
    FROM unnest(job_seqs) AS own (seq)
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

-- name: rewrite_jobs
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
{by_index}
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

-- name: delete_jobs
-- Delete jobs with their tags, keys and the edges into them: all or, when one has moved on, none.
-- Their events stay, and so does the way from an id to its events, as long as it has any.
CREATE OR REPLACE FUNCTION headrace.delete_jobs(ids text[], versions integer[]) RETURNS boolean
LANGUAGE plpgsql
{by_index}
AS $$
#variable_conflict use_column
DECLARE
    job_seqs bigint[];
    {tag_variables};
    key_tenants text[];
    key_queues text[];
    key_types text[];
    key_keys text[];
    key_job_ids text[];
BEGIN
    job_seqs := ARRAY(
        SELECT jobs.seq
        FROM headrace.jobs
        WHERE jobs.seq = ANY (ARRAY(SELECT bodies.seq FROM headrace.bodies WHERE bodies.id = ANY (ids)))
        ORDER BY jobs.seq
        FOR UPDATE
    );
    PERFORM FROM unnest(ids, versions) AS wanted (id, version)
    INNER JOIN headrace.bodies ON bodies.id = wanted.id
    INNER JOIN headrace.jobs ON jobs.seq = bodies.seq
    WHERE jobs.version <> wanted.version;
    IF FOUND THEN
        RETURN FALSE;
    END IF;
    {take_tags_off};
    SELECT
        array_agg(lanes.tenant),
        array_agg(lanes.queue),
        array_agg(lanes.type),
        array_agg(bodies.key),
        array_agg(bodies.id)
    INTO key_tenants, key_queues, key_types, key_keys, key_job_ids
    FROM unnest(job_seqs) AS lost (seq)
    INNER JOIN headrace.bodies ON bodies.seq = lost.seq
    INNER JOIN headrace.lanes ON lanes.id = bodies.lane
    WHERE bodies.key IS NOT NULL;
    IF key_keys IS NOT NULL THEN
        DELETE FROM headrace.keys
        USING unnest(key_tenants, key_queues, key_types, key_keys, key_job_ids)
        AS held (tenant, queue, type, key, job_id)
        WHERE
            keys.tenant = held.tenant
            AND keys.queue = held.queue
            AND keys.type = held.type
            AND keys.key = held.key
            AND keys.job_id = held.job_id;
    END IF;
    DELETE FROM headrace.edges
    USING unnest(ids) AS lost (id)
    WHERE edges.child_id = lost.id;
    WITH deleted AS (
        DELETE FROM headrace.jobs WHERE jobs.seq = ANY (job_seqs) RETURNING jobs.lane, jobs.state
    )
    INSERT INTO headrace.untallied (lane, state, jobs)
    SELECT deleted.lane, deleted.state, count(*)
    FROM deleted
    GROUP BY deleted.lane, deleted.state;
    WITH deleted AS (
        DELETE FROM headrace.bodies WHERE bodies.seq = ANY (job_seqs) RETURNING bodies.id, bodies.seq
    )
    INSERT INTO headrace.deleted_jobs (id, seq)
    SELECT deleted.id, deleted.seq
    FROM deleted
    WHERE EXISTS (SELECT FROM headrace.events WHERE events.job_seq = deleted.seq);
    RETURN TRUE;
END;
$$;

-- fragment: tag_variables
tag_names text[];
tag_seqs bigint[];
tag_lanes integer[];
tag_earlies boolean[];
tag_run_ats timestamptz[];

-- fragment: take_tags_off
-- What is to go is listed first and then looked up entry by entry: a join could start anywhere.
SELECT
    array_agg(had.tag),
    array_agg(jobs.seq),
    array_agg(jobs.lane),
    array_agg(jobs.early),
    array_agg(jobs.run_at)
INTO tag_names, tag_seqs, tag_lanes, tag_earlies, tag_run_ats
FROM unnest(job_seqs) AS own (seq)
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
