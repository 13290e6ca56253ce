-- name: commit_changes
-- Write finished changes of jobs, each if its job is still as it was read. The version alone proves nothing:
-- all that whoever made the change has taken for granted is compared.
-- In the same transaction: events, the outcome of edges from jobs that ended, keys given up, tags.
CREATE OR REPLACE FUNCTION headrace.commit_changes(
    together boolean, -- all or nothing
    leases_as_read boolean, -- compare lease_until too
    -- one element per change, or one for all, or none for NULL: see spread
    seqs bigint[],
    -- of the job as it was read, of the job as it is to be, and of the event as far as the job does not tell
    {change.parameters},
    -- one element per key of a job that ends
    key_tenants text[],
    key_queues text[],
    key_types text[],
    key_keys text[],
    key_job_ids text[],
    -- one element per tag of a job that is claimable before or after
    tag_seqs bigint[],
    tags text[],
    tag_lanes integer[],
    tag_run_ats timestamptz[], -- before; NULL: it was not claimable
    -- one element per edge whose outcome its child has been judged by
    seen_parents text[],
    seen_children text[],
    -- the positions of the changes that were written
    OUT applied integer[],
    -- the edges that got an outcome
    OUT touched_parents text[],
    OUT touched_children text[],
    OUT touched_kinds text[],
    OUT touched_outcomes text[]
)
LANGUAGE plpgsql
{by_index}
AS $$
#variable_conflict use_column
DECLARE
    row_count integer := cardinality(seqs);
    current_count bigint;
    all_written boolean;
    written_seqs bigint[];
    ended_ids text[];
    ended_states text[];
    touched_ords bigint[];
BEGIN
    IF row_count > 0 THEN
        IF row_count > 1 THEN
            {change.spread};
        END IF;
        -- Lock before anything else, in order of seq: two groups that meet wait for each other in one
        -- direction only. The statements below take new snapshots, so they see all that was
        -- committed before the locks were had.
        PERFORM FROM headrace.jobs
        WHERE jobs.seq = ANY (seqs)
        ORDER BY jobs.seq
        FOR NO KEY UPDATE;
        IF together THEN
            SELECT count(*) INTO current_count
            FROM {given_changes}
            INNER JOIN headrace.bodies ON bodies.seq = change.seq AND bodies.id = change.id_read
            INNER JOIN headrace.jobs ON jobs.seq = change.seq
            WHERE {is_as_read};
            IF current_count < row_count THEN
                applied := '{}';
                RETURN;
            END IF;
        END IF;

        WITH written AS (
            UPDATE headrace.jobs SET
                {change.written},
                early = change.run_at
                < greatest(change.updated_at, clock_timestamp() - interval '500 ms'),
                -- A heartbeat may have come since the job was read.
                lease_until = CASE
                    WHEN jobs.token IS NOT NULL AND change.token IS NOT NULL THEN jobs.lease_until
                    ELSE change.lease_until
                END
            FROM {given_changes}
            INNER JOIN headrace.bodies ON bodies.seq = change.seq AND bodies.id = change.id_read
            WHERE jobs.seq = change.seq AND {is_as_read}
            RETURNING
                jobs.seq, jobs.lane, change.id_read AS id, change.state_read, change.state,
                change.version,
                change.run_at, change.updated_at, change.attempt, change.failures, change.losses,
                change.lease_until, change.assignee, change.finalized_at, change.event_kind,
                change.event_category, change.event_code, change.event_message,
                change.event_wait_us, change.event_run_us, change.event_result_bytes,
                change.position
        ),
        logged AS (
            INSERT INTO headrace.events (
                at, run_at, job_seq, lane, version, attempt, failures, losses, result_bytes,
                lease_until, wait_us, run_us, job_id, kind, before, after, worker, category, code,
                message
            )
            SELECT
                written.updated_at, written.run_at, written.seq, written.lane, written.version,
                written.attempt, written.failures, written.losses, written.event_result_bytes,
                written.lease_until, written.event_wait_us, written.event_run_us, written.id,
                written.event_kind, written.state_read, written.state, written.assignee,
                written.event_category, written.event_code, written.event_message
            FROM written
            ORDER BY written.position
        )
        SELECT
            coalesce(array_agg(written.position::integer), '{}'),
            array_agg(written.seq),
            array_agg(written.id ORDER BY written.position)
            FILTER (WHERE written.finalized_at IS NOT NULL),
            array_agg(written.state ORDER BY written.position)
            FILTER (WHERE written.finalized_at IS NOT NULL)
        INTO applied, written_seqs, ended_ids, ended_states
        FROM written;
        all_written := cardinality(applied) = row_count;

        IF cardinality(tags) > 0 THEN
            -- Row by row, for the LIMIT: see lease_jobs and insert_jobs.
            DELETE FROM headrace.ready_tags
            USING unnest(tag_seqs, tags, tag_lanes, tag_run_ats) AS had (seq, tag, lane, run_at)
            CROSS JOIN LATERAL (
                SELECT line.ctid AS place
                FROM headrace.ready_tags AS line
                WHERE
                    line.tag = had.tag
                    AND line.lane = had.lane
                    AND line.early IN (FALSE, TRUE) -- so that the whole key is given
                    AND line.run_at = had.run_at
                    AND line.seq = had.seq
                LIMIT 1
            ) AS found
            WHERE
                (all_written OR had.seq = ANY (written_seqs))
                AND ready_tags.ctid = found.place;
            INSERT INTO headrace.ready_tags (tag, lane, early, run_at, seq)
            SELECT
                has.tag,
                job.lane,
                job.early,
                job.run_at,
                job.seq
            FROM unnest(tag_seqs, tags) AS has (seq, tag)
            CROSS JOIN LATERAL (
                SELECT
                    jobs.lane,
                    jobs.early,
                    jobs.run_at,
                    jobs.seq,
                    jobs.state
                FROM headrace.jobs
                WHERE jobs.seq = has.seq
                LIMIT 1
            ) AS job
            WHERE
                (all_written OR has.seq = ANY (written_seqs))
                AND job.state IN ('pending', 'retrying', 'lost');
        END IF;

        IF ended_ids IS NOT NULL THEN
            {give_outcomes};
        END IF;
    END IF;

    IF cardinality(seen_parents) > 0 THEN
        UPDATE headrace.edges SET seen = TRUE
        WHERE
            edges.ord = ANY (ARRAY(
                SELECT edges.ord
                FROM unnest(seen_parents, seen_children) AS seen (parent_id, child_id)
                INNER JOIN headrace.edges
                    ON edges.parent_id = seen.parent_id AND edges.child_id = seen.child_id
                WHERE
                    edges.outcome IS NOT NULL
                    -- A child whose own change was not written has not been judged.
                    AND (
                        all_written IS NOT FALSE
                        OR seen.child_id <> ALL (ARRAY(
                            SELECT change.id
                            FROM unnest(id_read_each) WITH ORDINALITY AS change (id, position)
                            WHERE change.position <> ALL (coalesce(applied, '{}'))
                        ))
                    )
            ))
            AND NOT edges.seen;
    END IF;
END;
$$;

-- fragment: given_changes
unnest(seqs, {change.arrays}) WITH ORDINALITY AS change (seq, {change.names}, position)

-- fragment: is_as_read
{change.as_read}
AND (NOT leases_as_read OR jobs.lease_until IS NOT DISTINCT FROM change.lease_until_read)

-- fragment: give_outcomes
-- Mostly there are no edges, and one probe per job says so.
SELECT
    array_agg(open_edge.ord),
    array_agg(ended.id),
    array_agg(open_edge.child_id),
    array_agg(open_edge.kind),
    array_agg(ended.state)
INTO
    touched_ords, touched_parents, touched_children, touched_kinds, touched_outcomes
FROM
    unnest(ended_ids, ended_states) WITH ORDINALITY AS ended (id, state, position)
CROSS JOIN LATERAL (
    SELECT
        edges.ord,
        edges.child_id,
        edges.kind
    FROM headrace.edges
    WHERE edges.parent_id = ended.id AND edges.outcome IS NULL
    ORDER BY edges.ord
    OFFSET 0
) AS open_edge;
IF touched_ords IS NOT NULL THEN
    UPDATE headrace.edges SET outcome = settled.outcome
    FROM unnest(touched_ords, touched_outcomes) AS settled (ord, outcome)
    WHERE edges.ord = settled.ord;
END IF;
IF cardinality(key_keys) > 0 THEN
    DELETE FROM headrace.keys
    USING unnest(key_tenants, key_queues, key_types, key_keys, key_job_ids)
    AS spent (tenant, queue, type, key, job_id)
    WHERE
        keys.tenant = spent.tenant
        AND keys.queue = spent.queue
        AND keys.type = spent.type
        AND keys.key = spent.key
        AND keys.job_id = spent.job_id
        AND keys.released_when_terminal
        AND (all_written OR spent.job_id = ANY (ended_ids));
END IF;

-- name: complete_jobs
-- The usual end: running jobs that completed, all at one time. What it writes equals lifecycle.apply(job,
-- Complete(...), now), field by field; a test compares the two. All that was read is compared, as for any change.
CREATE OR REPLACE FUNCTION headrace.complete_jobs(
    the_time timestamptz,
    -- one element per job, by seq, so that two groups that meet wait for each other in one direction only
    seqs bigint[],
    results bytea[], -- none: all are NULL
    positions integer[], -- in which order their events are written
    -- of the job as it was read: one element per job, or one for all, or none for NULL
    {read.parameters},
    -- one element per key of these jobs
    key_tenants text[],
    key_queues text[],
    key_types text[],
    key_keys text[],
    key_job_ids text[],
    OUT applied integer[], -- the positions of the jobs that were written
    OUT touched_parents text[],
    OUT touched_children text[],
    OUT touched_kinds text[],
    OUT touched_outcomes text[]
)
LANGUAGE plpgsql
{by_index}
AS $$
DECLARE
    row_count integer := cardinality(seqs);
    leases_as_read CONSTANT boolean := FALSE;
    all_written boolean;
    ended_ids text[];
    ended_states text[];
    touched_ords bigint[];
BEGIN
    IF row_count > 1 THEN
        {read.spread};
    END IF;
    WITH written AS (
        UPDATE headrace.jobs SET
            state = 'completed',
            version = jobs.version + 1,
            updated_at = the_time,
            token = NULL,
            lease_until = NULL,
            finalized_at = the_time,
            result = change.result
        FROM unnest(seqs, results, positions, {read.arrays})
        AS change (seq, result, position, {read.names})
        INNER JOIN headrace.bodies ON bodies.seq = change.seq AND bodies.id = change.id_read
        WHERE jobs.seq = change.seq AND {is_as_read}
        RETURNING
            jobs.run_at, jobs.seq, jobs.lane, jobs.version, jobs.attempt, jobs.failures,
            jobs.losses, jobs.assigned_at, jobs.assignee, jobs.state,
            octet_length(change.result) AS result_bytes, bodies.id, change.position
    ),
    logged AS (
        INSERT INTO headrace.events (
            at, run_at, job_seq, lane, version, attempt, failures, losses, result_bytes, run_us,
            job_id, kind, before, after, worker
        )
        SELECT
            the_time, written.run_at, written.seq, written.lane, written.version, written.attempt,
            written.failures, written.losses, written.result_bytes,
            (date_part('epoch', the_time - written.assigned_at) * 1000000)::bigint,
            written.id, 'completed', 'running', written.state, written.assignee
        FROM written
        ORDER BY written.position
    )
    SELECT
        coalesce(array_agg(written.position), '{}'),
        array_agg(written.id ORDER BY written.position),
        array_agg(written.state)
    INTO applied, ended_ids, ended_states
    FROM written;
    all_written := cardinality(applied) = row_count;
    IF ended_ids IS NOT NULL THEN
        {give_outcomes};
    END IF;
END;
$$;
