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
    hint_channel text, -- NULL: nobody is told
    hint_sender text,
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
    {new.parameters},
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
    row_count integer := cardinality(id_each);
    seq_each bigint[];
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

    seq_each := ARRAY(
        SELECT nextval('headrace.job_seqs') FROM generate_series(1, row_count)
    );
    IF row_count > 1 THEN
        {new.spread};
    END IF;
    INSERT INTO headrace.bodies ({new.bodies})
    SELECT {new.bodies.values}
    FROM unnest({new.bodies.arrays}) AS new ({new.bodies.names});

    INSERT INTO headrace.jobs ({new.jobs})
    SELECT {new.jobs.values}
    FROM (
        SELECT
            given.*,
            is_late OR {is_early} AS early
        FROM unnest(created_at_each, {new.jobs.arrays}) AS given (created_at, {new.jobs.names})
    ) AS new;

    INSERT INTO headrace.events ({new.events})
    SELECT {new.events.values}
    FROM unnest({new.events.arrays}) AS new ({new.events.names});

    IF cardinality(tags) > 0 THEN
        INSERT INTO headrace.job_tags (tag, seq)
        SELECT
            new.tag,
            seq_each[new.position]
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
            WHERE jobs.seq = seq_each[new.position]
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
    IF hint_channel IS NOT NULL THEN
        PERFORM pg_notify(hint_channel, hint_sender);
    END IF;
    RETURN seq_each;
END;
$$;

-- fragment: is_early
given.run_at < greatest(given.created_at, clock_timestamp() - interval '500 ms')

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
