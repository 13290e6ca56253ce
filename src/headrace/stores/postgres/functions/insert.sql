-- name: insert_jobs
-- Store new jobs with their events, tags, edges and keys, or raise and store nothing.
--
-- Raises HR001 when the fence does not hold, a parent is not as it was read, the graph has grown around a job,
-- or a key is held; unique_violation when an id is stored already. The caller then looks which, and answers with a clash.
--
-- The race "a child is inserted while its parent ends" cannot happen: the parents are locked before they
-- are looked at, and whoever ends one holds its lock and afterwards looks for edges with a new snapshot.
CREATE OR REPLACE FUNCTION headrace.insert_jobs(
    the_time timestamptz,
    is_late boolean, -- the caller's own transaction decides when this commits: see pick_jobs
    fence_id text,
    fence_token text,
    guard_ids text[], -- stored parents, and the outcome each was read with
    guard_outcomes text[],
    kin_ids text[], -- stored jobs, and what was read around them: see grown_kin
    kin_versions integer[],
    kin_parents_maxima integer[],
    kin_join_lists text[],
    kin_spawned_lists text[],
    -- one element per job, or one for all, or none for NULL: see spread
    ids text[],
    lanes integer[],
    tag_lists text[], -- array literals
    created_ats timestamptz[],
    keys text[],
    previous_ids text[],
    parent_ids text[],
    correlation_ids text[],
    callback_urls text[],
    depths integer[],
    max_attempts_each integer[],
    lease_seconds_each double precision[],
    lease_us_each bigint[],
    timeout_seconds_each double precision[],
    expires_ats timestamptz[],
    backoffs bytea[],
    payloads bytea[],
    states text[],
    versions integer[],
    run_ats timestamptz[],
    updated_ats timestamptz[],
    attempts integer[],
    failures_each integer[],
    losses_each integer[],
    tokens text[],
    lease_untils timestamptz[],
    assignees text[],
    assigned_ats timestamptz[],
    scheduled_ats timestamptz[],
    started_ats timestamptz[],
    last_failed_ats timestamptz[],
    finalized_ats timestamptz[],
    failure_messages text[],
    failure_categories text[],
    failure_codes text[],
    results bytea[],
    progresses double precision[],
    progress_notes text[],
    checkpoints bytea[],
    logs bytea[],
    -- their events, as far as the jobs do not tell
    event_ats timestamptz[],
    event_kinds text[],
    event_payload_bytes integer[],
    event_details bytea[],
    -- one element per tag of a job
    tag_positions integer[],
    tags text[],
    -- one element per edge
    edge_parents text[],
    edge_children text[],
    edge_kinds text[],
    edge_outcomes text[],
    edge_seens boolean[],
    -- one element per key, in order of the key so that two batches never wait for each other
    key_tenants text[],
    key_queues text[],
    key_types text[],
    key_keys text[],
    key_job_ids text[],
    key_expires_ats timestamptz[],
    key_releases boolean[]
) RETURNS bigint[] -- the seqs, in order
LANGUAGE plpgsql
{by_index}
AS $$
#variable_conflict use_column
DECLARE
    job_count integer := cardinality(ids);
    new_seqs bigint[];
    found_rows bigint;
BEGIN
    -- Insertions that look at each other's kin take turns, and the later one looks with a new snapshot.
    IF cardinality(kin_ids) > 0 THEN
        PERFORM FROM headrace.jobs
        WHERE jobs.seq = ANY (ARRAY(
            SELECT bodies.seq FROM headrace.bodies
            WHERE bodies.id = ANY (kin_ids || guard_ids || fence_id)
        ))
        ORDER BY jobs.seq
        FOR NO KEY UPDATE;
    ELSIF fence_id IS NOT NULL OR cardinality(guard_ids) > 0 THEN
        PERFORM FROM headrace.jobs
        WHERE jobs.seq = ANY (ARRAY(
            SELECT bodies.seq FROM headrace.bodies WHERE bodies.id = ANY (guard_ids || fence_id)
        ))
        ORDER BY jobs.seq
        FOR SHARE;
    END IF;
    IF fence_id IS NOT NULL THEN
        PERFORM FROM headrace.bodies
        INNER JOIN headrace.jobs ON jobs.seq = bodies.seq
        WHERE
            bodies.id = fence_id
            AND jobs.token = fence_token
            AND headrace.lease_holds(
                the_time, jobs.lease_until, jobs.expires_at, jobs.assigned_at, bodies.timeout_seconds
            );
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the fence does not hold' USING ERRCODE = 'HR001';
        END IF;
    END IF;
    IF cardinality(guard_ids) > 0 THEN
        SELECT count(*) INTO found_rows
        FROM unnest(guard_ids, guard_outcomes) AS guard (id, outcome)
        INNER JOIN headrace.bodies ON bodies.id = guard.id
        INNER JOIN headrace.jobs ON jobs.seq = bodies.seq
        WHERE
            CASE WHEN jobs.finalized_at IS NOT NULL THEN jobs.state END
            IS NOT DISTINCT FROM guard.outcome;
        IF found_rows < cardinality(guard_ids) THEN
            RAISE EXCEPTION 'a parent is not as it was read' USING ERRCODE = 'HR001';
        END IF;
    END IF;
    IF cardinality(kin_ids) > 0 THEN
        PERFORM FROM headrace.grown_kin(
            kin_ids, kin_versions, kin_parents_maxima, kin_join_lists, kin_spawned_lists
        );
        IF FOUND THEN
            RAISE EXCEPTION 'the graph has grown' USING ERRCODE = 'HR001';
        END IF;
    END IF;
    IF cardinality(key_keys) > 0 THEN
        INSERT INTO headrace.keys AS held (
            tenant, queue, type, key, job_id, expires_at, released_when_terminal
        )
        SELECT *
        FROM unnest(
            key_tenants, key_queues, key_types, key_keys, key_job_ids, key_expires_ats, key_releases
        )
        ON CONFLICT (tenant, queue, type, key) DO UPDATE SET
            job_id = excluded.job_id,
            expires_at = excluded.expires_at,
            released_when_terminal = excluded.released_when_terminal
        WHERE held.expires_at <= the_time;
        GET DIAGNOSTICS found_rows = ROW_COUNT;
        IF found_rows < cardinality(key_keys) THEN
            RAISE EXCEPTION 'a key is held' USING ERRCODE = 'HR001';
        END IF;
    END IF;

    new_seqs := ARRAY(
        SELECT nextval('headrace.job_seqs') FROM generate_series(1, job_count)
    );
    IF job_count > 1 THEN
        lanes := headrace.spread(lanes, job_count);
        tag_lists := headrace.spread(tag_lists, job_count);
        created_ats := headrace.spread(created_ats, job_count);
        keys := headrace.spread(keys, job_count);
        previous_ids := headrace.spread(previous_ids, job_count);
        parent_ids := headrace.spread(parent_ids, job_count);
        correlation_ids := headrace.spread(correlation_ids, job_count);
        callback_urls := headrace.spread(callback_urls, job_count);
        depths := headrace.spread(depths, job_count);
        max_attempts_each := headrace.spread(max_attempts_each, job_count);
        lease_seconds_each := headrace.spread(lease_seconds_each, job_count);
        lease_us_each := headrace.spread(lease_us_each, job_count);
        timeout_seconds_each := headrace.spread(timeout_seconds_each, job_count);
        expires_ats := headrace.spread(expires_ats, job_count);
        backoffs := headrace.spread(backoffs, job_count);
        payloads := headrace.spread(payloads, job_count);
        states := headrace.spread(states, job_count);
        versions := headrace.spread(versions, job_count);
        run_ats := headrace.spread(run_ats, job_count);
        updated_ats := headrace.spread(updated_ats, job_count);
        attempts := headrace.spread(attempts, job_count);
        failures_each := headrace.spread(failures_each, job_count);
        losses_each := headrace.spread(losses_each, job_count);
        tokens := headrace.spread(tokens, job_count);
        lease_untils := headrace.spread(lease_untils, job_count);
        assignees := headrace.spread(assignees, job_count);
        assigned_ats := headrace.spread(assigned_ats, job_count);
        scheduled_ats := headrace.spread(scheduled_ats, job_count);
        started_ats := headrace.spread(started_ats, job_count);
        last_failed_ats := headrace.spread(last_failed_ats, job_count);
        finalized_ats := headrace.spread(finalized_ats, job_count);
        failure_messages := headrace.spread(failure_messages, job_count);
        failure_categories := headrace.spread(failure_categories, job_count);
        failure_codes := headrace.spread(failure_codes, job_count);
        results := headrace.spread(results, job_count);
        progresses := headrace.spread(progresses, job_count);
        progress_notes := headrace.spread(progress_notes, job_count);
        checkpoints := headrace.spread(checkpoints, job_count);
        logs := headrace.spread(logs, job_count);
        event_ats := headrace.spread(event_ats, job_count);
        event_kinds := headrace.spread(event_kinds, job_count);
        event_payload_bytes := headrace.spread(event_payload_bytes, job_count);
        event_details := headrace.spread(event_details, job_count);
    END IF;
    INSERT INTO headrace.bodies (
        seq, id, lane, tags, created_at, key, previous_id, parent_id, correlation_id, callback_url,
        depth, lease_seconds, timeout_seconds, backoff, payload
    )
    SELECT
        new.seq, new.id, new.lane, new.tags::text[], new.created_at, new.key, new.previous_id,
        new.parent_id, new.correlation_id, new.callback_url, new.depth, new.lease_seconds,
        new.timeout_seconds, new.backoff, new.payload
    FROM unnest(
        new_seqs, ids, lanes, tag_lists, created_ats, keys, previous_ids, parent_ids,
        correlation_ids, callback_urls, depths, lease_seconds_each, timeout_seconds_each,
        backoffs, payloads
    ) AS new (
        seq, id, lane, tags, created_at, key, previous_id, parent_id, correlation_id, callback_url,
        depth, lease_seconds, timeout_seconds, backoff, payload
    );

    INSERT INTO headrace.jobs (
        seq, run_at, updated_at, lane, version, attempt, failures, losses, max_attempts, early,
        state, lease_us, expires_at, lease_until, assigned_at, scheduled_at, started_at,
        last_failed_at, finalized_at, progress, token, assignee, failure_category, failure_code,
        failure_message, progress_note, result, checkpoint, log
    )
    SELECT
        new.seq, new.run_at, new.updated_at, new.lane, new.version, new.attempt, new.failures,
        new.losses, new.max_attempts,
        is_late OR new.run_at < greatest(new.created_at, clock_timestamp() - interval '500 ms'),
        new.state, new.lease_us, new.expires_at, new.lease_until, new.assigned_at,
        new.scheduled_at, new.started_at, new.last_failed_at, new.finalized_at, new.progress,
        new.token, new.assignee, new.failure_category, new.failure_code, new.failure_message,
        new.progress_note, new.result, new.checkpoint, new.log
    FROM unnest(
        new_seqs, run_ats, updated_ats, lanes, versions, attempts, failures_each, losses_each,
        max_attempts_each, states, created_ats, lease_us_each, expires_ats, lease_untils, assigned_ats,
        scheduled_ats, started_ats, last_failed_ats, finalized_ats, progresses, tokens, assignees,
        failure_categories, failure_codes, failure_messages, progress_notes, results, checkpoints,
        logs
    ) AS new (
        seq, run_at, updated_at, lane, version, attempt, failures, losses, max_attempts, state,
        created_at, lease_us, expires_at, lease_until, assigned_at, scheduled_at, started_at, last_failed_at,
        finalized_at, progress, token, assignee, failure_category, failure_code, failure_message,
        progress_note, result, checkpoint, log
    );

    INSERT INTO headrace.events (
        at, run_at, job_seq, lane, version, attempt, failures, losses, payload_bytes, lease_until,
        job_id, kind, after, worker, detail
    )
    SELECT
        new.at, new.run_at, new.seq, new.lane, new.version, new.attempt, new.failures, new.losses,
        new.payload_bytes, new.lease_until, new.id, new.kind, new.state, new.assignee, new.detail
    FROM unnest(
        event_ats, run_ats, new_seqs, lanes, versions, attempts, failures_each, losses_each,
        event_payload_bytes, lease_untils, ids, event_kinds, states, assignees, event_details
    ) AS new (
        at, run_at, seq, lane, version, attempt, failures, losses, payload_bytes, lease_until, id,
        kind, state, assignee, detail
    );

    IF cardinality(tags) > 0 THEN
        INSERT INTO headrace.job_tags (tag, seq)
        SELECT
            new.tag,
            new_seqs[new.position]
        FROM unnest(tags, tag_positions) AS new (tag, position);
        -- Job by job, for the LIMIT: where statistics say that hardly any job waits, a join would begin
        -- with all that wait.
        INSERT INTO headrace.ready_tags (tag, lane, early, run_at, seq)
        SELECT
            new.tag,
            job.lane,
            job.early,
            job.run_at,
            job.seq
        FROM unnest(tags, tag_positions) AS new (tag, position)
        CROSS JOIN LATERAL (
            SELECT
                jobs.lane,
                jobs.early,
                jobs.run_at,
                jobs.seq,
                jobs.state
            FROM headrace.jobs
            WHERE jobs.seq = new_seqs[new.position]
            LIMIT 1
        ) AS job
        WHERE job.state IN ('pending', 'retrying', 'lost');
    END IF;

    IF cardinality(edge_parents) > 0 THEN
        INSERT INTO headrace.edges (parent_id, child_id, kind, outcome, seen)
        SELECT *
        FROM unnest(edge_parents, edge_children, edge_kinds, edge_outcomes, edge_seens)
        ON CONFLICT (parent_id, child_id) DO UPDATE SET
            kind = excluded.kind,
            outcome = excluded.outcome,
            seen = excluded.seen;
    END IF;
    RETURN new_seqs;
END;
$$;

-- name: grown_kin
-- Around which of these jobs the graph is not as an insertion took it to be: one element per job, NULL for what
-- does not matter.
CREATE OR REPLACE FUNCTION headrace.grown_kin(
    the_ids text[],
    versions integer[],
    parents_maxima integer[],
    join_lists text[], -- array literals
    spawned_lists text[] -- array literals
) RETURNS SETOF text
LANGUAGE plpgsql
{by_index}
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT wanted.id
    FROM
        unnest(the_ids, versions, parents_maxima, join_lists, spawned_lists)
        AS wanted (id, version, parents_max, joins, spawned)
    WHERE
        (
            wanted.version IS NOT NULL
            -- As a value, not by EXISTS: that may become a hash of all jobs there are.
            AND wanted.version IS DISTINCT FROM (
                SELECT jobs.version FROM headrace.bodies
                INNER JOIN headrace.jobs ON jobs.seq = bodies.seq
                WHERE bodies.id = wanted.id
            )
        )
        OR (
            wanted.parents_max IS NOT NULL
            AND (SELECT count(*) FROM headrace.edges WHERE edges.child_id = wanted.id)
            > wanted.parents_max
        )
        OR (
            wanted.joins IS NOT NULL
            AND EXISTS (
                SELECT FROM headrace.edges
                WHERE
                    edges.parent_id = wanted.id
                    AND edges.kind = 'fan_in'
                    AND edges.child_id <> ALL (wanted.joins::text[])
            )
        )
        OR (
            wanted.spawned IS NOT NULL
            AND EXISTS (
                SELECT FROM headrace.bodies
                WHERE bodies.parent_id = wanted.id AND bodies.id <> ALL (wanted.spawned::text[])
            )
        );
END;
$$;

-- name: spread
-- One element stands for the same value in every row, so that it need not be sent a thousand times.
-- (An empty array stands for NULL in every row: unnest does that by itself.)
CREATE OR REPLACE FUNCTION headrace.spread(column_values anyarray, row_count integer) RETURNS anyarray
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
AS $$
SELECT CASE
    WHEN row_count > 1 AND cardinality(column_values) = 1
        THEN array_fill(column_values[1], ARRAY[row_count])
    ELSE column_values
END
$$;
