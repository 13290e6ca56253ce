-- The rows of load_rows as jobs, with events and tags; how many. Raises unique_violation.
CREATE OR REPLACE FUNCTION headrace.load_insert(tagged boolean) RETURNS bigint
LANGUAGE plpgsql
SET enable_nestloop = off
SET enable_mergejoin = off
AS $$
DECLARE
    created bigint;
BEGIN
    INSERT INTO headrace.bodies (
        seq, id, lane, tags, created_at, key, depth, lease_seconds, timeout_seconds, payload
    )
    SELECT
        load_rows.seq,
        load_rows.id,
        load_groups.lane,
        load_groups.tags,
        load_groups.created_at,
        load_rows.key,
        0,
        load_groups.lease_seconds,
        load_groups.timeout_seconds,
        load_rows.payload
    FROM pg_temp.load_rows
    INNER JOIN pg_temp.load_groups ON load_groups.group_number = load_rows.group_number;
    GET DIAGNOSTICS created = ROW_COUNT;

    INSERT INTO headrace.jobs (
        seq, run_at, updated_at, lane, version, attempt, failures, losses, max_attempts, early, state,
        lease_us, expires_at
    )
    SELECT
        load_rows.seq,
        coalesce(load_rows.run_at, load_groups.created_at),
        load_groups.created_at,
        load_groups.lane,
        1,
        0,
        0,
        0,
        load_groups.max_attempts,
        TRUE,
        'pending',
        load_groups.lease_us,
        load_groups.expires_at
    FROM pg_temp.load_rows
    INNER JOIN pg_temp.load_groups ON load_groups.group_number = load_rows.group_number;

    INSERT INTO headrace.events (
        at, run_at, job_seq, lane, version, attempt, failures, losses, payload_bytes, job_id, kind,
        after, detail
    )
    SELECT
        load_groups.created_at,
        coalesce(load_rows.run_at, load_groups.created_at),
        load_rows.seq,
        load_groups.lane,
        1,
        0,
        0,
        0,
        octet_length(load_rows.payload),
        load_rows.id,
        'enqueued',
        'pending',
        CASE
            WHEN load_rows.key IS NULL
                THEN load_groups.detail
            ELSE load_groups.keyed_head || load_rows.key_json || load_groups.keyed_tail
        END
    FROM pg_temp.load_rows
    INNER JOIN pg_temp.load_groups ON load_groups.group_number = load_rows.group_number;

    IF tagged THEN
        INSERT INTO headrace.job_tags (tag, seq)
        SELECT
            own.tag,
            load_rows.seq
        FROM pg_temp.load_rows
        INNER JOIN pg_temp.load_groups ON load_groups.group_number = load_rows.group_number
        CROSS JOIN LATERAL unnest(load_groups.tags) AS own (tag);
        INSERT INTO headrace.ready_tags (tag, lane, early, run_at, seq)
        SELECT
            own.tag,
            load_groups.lane,
            TRUE,
            coalesce(load_rows.run_at, load_groups.created_at),
            load_rows.seq
        FROM pg_temp.load_rows
        INNER JOIN pg_temp.load_groups ON load_groups.group_number = load_rows.group_number
        CROSS JOIN LATERAL unnest(load_groups.tags) AS own (tag);
    END IF;
    RETURN created;
END;
$$;
