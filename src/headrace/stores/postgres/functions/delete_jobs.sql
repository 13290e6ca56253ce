-- Delete jobs with their tags, keys and the edges into them: all or, when one has moved on, none.
-- Their events stay, and so does the way from an id to its events, as long as it has any.
CREATE OR REPLACE FUNCTION headrace.delete_jobs(ids text[], versions integer[]) RETURNS boolean
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
    gone bigint[];
    tag_names text[];
    tag_seqs bigint[];
    tag_lanes integer[];
    tag_earlies boolean[];
    tag_run_ats timestamptz[];
    key_tenants text[];
    key_queues text[];
    key_types text[];
    key_keys text[];
    key_job_ids text[];
BEGIN
    gone := ARRAY(
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
    -- What is to go is listed first and then looked up entry by entry: a join could start anywhere.
    SELECT
        array_agg(had.tag),
        array_agg(jobs.seq),
        array_agg(jobs.lane),
        array_agg(jobs.early),
        array_agg(jobs.run_at)
    INTO tag_names, tag_seqs, tag_lanes, tag_earlies, tag_run_ats
    FROM unnest(gone) AS lost (seq)
    INNER JOIN headrace.jobs ON jobs.seq = lost.seq
    INNER JOIN headrace.bodies ON bodies.seq = lost.seq
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
    SELECT
        array_agg(lanes.tenant),
        array_agg(lanes.queue),
        array_agg(lanes.type),
        array_agg(bodies.key),
        array_agg(bodies.id)
    INTO key_tenants, key_queues, key_types, key_keys, key_job_ids
    FROM unnest(gone) AS lost (seq)
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
    DELETE FROM headrace.jobs WHERE jobs.seq = ANY (gone);
    WITH deleted AS (
        DELETE FROM headrace.bodies WHERE bodies.seq = ANY (gone) RETURNING bodies.id, bodies.seq
    )
    INSERT INTO headrace.deleted_jobs (id, seq)
    SELECT deleted.id, deleted.seq
    FROM deleted
    WHERE EXISTS (SELECT FROM headrace.events WHERE events.job_seq = deleted.seq);
    RETURN TRUE;
END;
$$;
