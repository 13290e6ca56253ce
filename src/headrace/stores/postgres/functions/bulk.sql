-- name: load_begin
-- The two tables that a bulk load is filled into, for as long as the transaction lasts: the rows, and what whole
-- groups of them have in common. Dropped with it, so that nothing is left on a connection that a pooler lends on.
CREATE OR REPLACE FUNCTION headrace.load_begin() RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    CREATE TEMPORARY TABLE load_rows (
        seq bigint NOT NULL DEFAULT nextval('headrace.job_seqs'), -- so jobs keep the order of the rows
        group_number integer NOT NULL,
        id text NOT NULL,
        key text,
        run_at timestamptz, -- NULL: at once
        key_json bytea, -- the key as it stands in the event's detail
        payload bytea NOT NULL
    ) ON COMMIT DROP;
    CREATE TEMPORARY TABLE load_groups (
        group_number integer NOT NULL,
        lane integer NOT NULL,
        tags text[] NOT NULL,
        created_at timestamptz NOT NULL,
        max_attempts integer,
        lease_seconds double precision,
        lease_us bigint,
        timeout_seconds double precision,
        expires_at timestamptz,
        detail bytea NOT NULL, -- of the events of rows without a key
        keyed_head bytea NOT NULL, -- of rows with one: what comes before it, and after
        keyed_tail bytea NOT NULL,
        key_expires_at timestamptz,
        key_released boolean NOT NULL
    ) ON COMMIT DROP;
END;
$$;

-- name: load_jobs
-- Make jobs of all rows in load_rows, with their events, tags and keys. A row whose job is stored already, or
-- whose key is held, is left out and counted as repeated.
--
-- Mostly all rows are new, so they are inserted as they are. Where that clashes it is undone, the rows that are
-- stored already are put aside, and the rest is tried again: whatever another transaction was storing when we
-- clashed with it is stored by then, or gone.
--
-- Every job is `early` (see pick_jobs): when this transaction commits is not known here.
CREATE OR REPLACE FUNCTION headrace.load_jobs(
    the_time timestamptz,
    tagged boolean, -- some groups have tags
    OUT created bigint,
    OUT repeated bigint
)
LANGUAGE plpgsql
-- The groups are few, the rows many and in the order of the indexes.
SET enable_nestloop = off
SET enable_mergejoin = off
AS $$
DECLARE
    given bigint;
    keyed boolean;
    tries integer := 0;
BEGIN
    SELECT
        count(*),
        count(load_rows.key) > 0
    INTO given, keyed
    FROM pg_temp.load_rows;
    IF keyed THEN
        -- Of several rows with one key, the first.
        DELETE FROM pg_temp.load_rows
        WHERE seq IN (
            SELECT numbered.seq
            FROM (
                SELECT
                    load_rows.seq,
                    row_number() OVER (PARTITION BY load_rows.id ORDER BY load_rows.seq) AS nth
                FROM pg_temp.load_rows
                WHERE load_rows.key IS NOT NULL
            ) AS numbered
            WHERE numbered.nth > 1
        );
    END IF;
    LOOP
        BEGIN
            IF keyed THEN
                PERFORM headrace.load_keys(the_time);
            END IF;
            created := headrace.load_insert(tagged);
            EXIT;
        EXCEPTION
            WHEN unique_violation THEN
                tries := tries + 1;
                IF tries > 20 THEN
                    RAISE;
                END IF;
        END;
        PERFORM headrace.load_forget_stored();
    END LOOP;
    repeated := given - created;
END;
$$;

-- name: load_keys
-- Hold the keys of the rows to be loaded, in order, so that two loads never wait for each other. Rows that did not
-- get theirs, because a job holds it, are left out of the load.
CREATE OR REPLACE FUNCTION headrace.load_keys(the_time timestamptz) RETURNS void
LANGUAGE sql
SET enable_nestloop = off
SET enable_mergejoin = off
AS $$
WITH got AS (
    INSERT INTO headrace.keys AS held (
        tenant, queue, type, key, job_id, expires_at, released_when_terminal
    )
    SELECT
        lanes.tenant,
        lanes.queue,
        lanes.type,
        load_rows.key,
        load_rows.id,
        load_groups.key_expires_at,
        load_groups.key_released
    FROM pg_temp.load_rows
    INNER JOIN pg_temp.load_groups ON load_groups.group_number = load_rows.group_number
    INNER JOIN headrace.lanes ON lanes.id = load_groups.lane
    WHERE load_rows.key IS NOT NULL
    ORDER BY lanes.tenant, lanes.queue, lanes.type, load_rows.key
    ON CONFLICT (tenant, queue, type, key) DO UPDATE SET
        job_id = excluded.job_id,
        expires_at = excluded.expires_at,
        released_when_terminal = excluded.released_when_terminal
    WHERE held.expires_at <= the_time
    RETURNING job_id
)
DELETE FROM pg_temp.load_rows
WHERE
    load_rows.key IS NOT NULL
    AND NOT EXISTS (SELECT FROM got WHERE got.job_id = load_rows.id)
$$;

-- name: load_insert
-- The rows of load_rows as jobs, with events and tags; how many. Raises unique_violation.
CREATE OR REPLACE FUNCTION headrace.load_insert(tagged boolean) RETURNS bigint
LANGUAGE plpgsql
SET enable_nestloop = off
SET enable_mergejoin = off
AS $$
DECLARE
    created bigint;
BEGIN
    WITH new AS MATERIALIZED (
        SELECT
            load_rows.seq,
            load_rows.id,
            load_rows.key,
            load_rows.payload,
            coalesce(load_rows.run_at, load_groups.created_at) AS run_at,
            load_groups.lane,
            load_groups.tags,
            load_groups.created_at,
            load_groups.created_at AS updated_at,
            load_groups.created_at AS event_at,
            load_groups.max_attempts,
            load_groups.lease_seconds,
            load_groups.lease_us,
            load_groups.timeout_seconds,
            load_groups.expires_at,
            0 AS depth,
            1 AS version,
            0 AS attempt,
            0 AS failures,
            0 AS losses,
            'pending' AS state,
            TRUE AS early,
            'enqueued' AS event_kind,
            octet_length(load_rows.payload) AS event_payload_bytes,
            CASE
                WHEN load_rows.key IS NULL
                    THEN load_groups.detail
                ELSE load_groups.keyed_head || load_rows.key_json || load_groups.keyed_tail
            END AS event_detail
        FROM pg_temp.load_rows
        INNER JOIN pg_temp.load_groups ON load_groups.group_number = load_rows.group_number
    ),
    in_bodies AS (
        INSERT INTO headrace.bodies ({loaded.bodies}) SELECT {loaded.bodies.values} FROM new
    ),
    in_jobs AS (INSERT INTO headrace.jobs ({loaded.jobs}) SELECT {loaded.jobs.values} FROM new),
    in_events AS (
        INSERT INTO headrace.events ({loaded.events}) SELECT {loaded.events.values} FROM new
    ),
    in_job_tags AS (
        INSERT INTO headrace.job_tags (tag, seq)
        SELECT own.tag, new.seq
        FROM new
        CROSS JOIN LATERAL unnest(new.tags) AS own (tag)
        WHERE tagged
    ),
    in_ready_tags AS (
        INSERT INTO headrace.ready_tags (tag, lane, early, run_at, seq)
        SELECT own.tag, new.lane, new.early, new.run_at, new.seq
        FROM new
        CROSS JOIN LATERAL unnest(new.tags) AS own (tag)
        WHERE tagged
    )
    SELECT count(*) INTO created FROM new;
    RETURN created;
END;
$$;

-- name: load_forget_stored
-- Leave the rows out of a load that are stored already. Raises HR002, and names the job, where something else is
-- stored by the name of a row without a key: then the rows do not come in the same order each time.
CREATE OR REPLACE FUNCTION headrace.load_forget_stored() RETURNS void
LANGUAGE plpgsql
-- Jobs are looked up one by one, whatever the statistics say: a query with a LIMIT is not merged into the one
-- around it, and without a scan of the whole table there is only the index.
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    other text;
BEGIN
    SELECT load_rows.id INTO other
    FROM pg_temp.load_rows
    INNER JOIN pg_temp.load_groups ON load_groups.group_number = load_rows.group_number
    CROSS JOIN LATERAL (
        SELECT
            bodies.lane,
            bodies.tags,
            bodies.payload
        FROM headrace.bodies
        WHERE bodies.id = load_rows.id
        LIMIT 1
    ) AS stored
    WHERE
        load_rows.key IS NULL
        AND (
            stored.lane <> load_groups.lane
            OR stored.tags <> load_groups.tags
            OR stored.payload <> load_rows.payload
        )
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '%', other USING ERRCODE = 'HR002';
    END IF;
    DELETE FROM pg_temp.load_rows
    WHERE seq IN (
        SELECT own.seq
        FROM pg_temp.load_rows AS own
        CROSS JOIN LATERAL (
            SELECT FROM headrace.bodies WHERE bodies.id = own.id LIMIT 1
        ) AS stored
    );
END;
$$;

-- name: load_stage
-- Make sure that the table is there which keeps the rows of an all-or-nothing load until its end. Not logged:
-- after a crash of the server it is empty, and whoever loads from it counts. Its comment says when it was made.
CREATE OR REPLACE FUNCTION headrace.load_stage(table_name text, the_time timestamptz) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    whole_name text := 'headrace.' || quote_ident(table_name);
BEGIN
    IF to_regclass(whole_name) IS NULL THEN
        PERFORM pg_advisory_xact_lock(hashtextextended(whole_name, 0));
        EXECUTE 'CREATE UNLOGGED TABLE IF NOT EXISTS ' || whole_name || ' ('
            'part integer NOT NULL, attempt bigint NOT NULL, row_number bigint NOT NULL,'
            ' group_number integer NOT NULL, id text NOT NULL, key text, key_json bytea,'
            ' run_at timestamptz, payload bytea NOT NULL)';
        EXECUTE 'COMMENT ON TABLE ' || whole_name || ' IS ' || quote_literal(the_time);
    END IF;
END;
$$;

-- name: load_staged
-- Take the staged rows of these attempts into load_rows, and how many there were. Group numbers are moved, so that
-- each attempt has its own. A row counts once, even if it was staged again because the server's answer was lost.
CREATE OR REPLACE FUNCTION headrace.load_staged(
    table_name text, parts integer[], attempts bigint[], first_groups integer[]
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    whole_name text := 'headrace.' || quote_ident(table_name);
    taken bigint;
BEGIN
    IF to_regclass(whole_name) IS NULL THEN
        RETURN 0;
    END IF;
    EXECUTE 'INSERT INTO pg_temp.load_rows (group_number, id, key, key_json, run_at, payload)'
        ' SELECT DISTINCT ON (staged.part, staged.row_number)'
        ' staged.group_number + chosen.first_group, staged.id, staged.key, staged.key_json,'
        ' staged.run_at, staged.payload'
        ' FROM ' || whole_name || ' AS staged'
        ' INNER JOIN unnest($1, $2, $3) AS chosen (part, attempt, first_group)'
        ' ON chosen.part = staged.part AND chosen.attempt = staged.attempt'
        ' ORDER BY staged.part, staged.row_number'
    USING parts, attempts, first_groups;
    GET DIAGNOSTICS taken = ROW_COUNT;
    RETURN taken;
END;
$$;

-- name: load_sweep
-- Drop this table of staged rows, and those that were made before the given time and forgotten: their writes
-- never came to an end. What somebody reads is not waited for long: it is swept another time.
CREATE OR REPLACE FUNCTION headrace.load_sweep(table_name text, prefix text, made_before timestamptz) RETURNS void
LANGUAGE plpgsql
SET lock_timeout = '2s'
AS $$
DECLARE
    old record;
BEGIN
    EXECUTE 'DROP TABLE IF EXISTS headrace.' || quote_ident(table_name);
    FOR old IN
        SELECT tables.relname AS name
        FROM pg_catalog.pg_class AS tables
        INNER JOIN pg_catalog.pg_class AS jobs ON jobs.relnamespace = tables.relnamespace
        WHERE
            jobs.oid = 'headrace.jobs'::regclass
            AND tables.relkind = 'r'
            AND starts_with(tables.relname, prefix)
            AND obj_description(tables.oid, 'pg_class')::timestamptz < made_before
    LOOP
        EXECUTE 'DROP TABLE IF EXISTS headrace.' || quote_ident(old.name);
    END LOOP;
END;
$$;
