-- name: read_records
-- The records of a kind, all or the named ones.
CREATE OR REPLACE FUNCTION headrace.read_records(
    the_kind text,
    the_names text[] -- NULL: all
) RETURNS TABLE (name text, version bigint, body bytea)
LANGUAGE plpgsql
STABLE
-- By index, whatever the statistics say: they may be from a time when the tables were empty.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT
        records.name,
        present.version,
        present.body
    FROM headrace.records
    CROSS JOIN LATERAL (
        SELECT
            record_versions.version,
            record_versions.body
        FROM headrace.record_versions
        WHERE record_versions.kind = records.kind AND record_versions.name = records.name
        ORDER BY record_versions.version DESC
        LIMIT 1
    ) AS present
    WHERE
        records.kind = the_kind
        AND (the_names IS NULL OR records.name = ANY (the_names));
END;
$$;

-- name: put_records
-- Store each record with the next version if all are as they were read (version 0: not there), else none.
-- Raises HR001 when one that was read as not there has come up at this very moment.
CREATE OR REPLACE FUNCTION headrace.put_records(
    the_kinds text[],
    the_names text[],
    the_versions bigint[],
    the_bodies bytea[]
) RETURNS boolean
LANGUAGE plpgsql
{by_index}
AS $$
#variable_conflict use_column
DECLARE
    new_count integer := cardinality(array_positions(the_versions, 0));
    current_count bigint;
BEGIN
    -- In order of name: two that share records wait for each other in one direction only. Whoever has waited
    -- for another finds that version gone.
    WITH locked AS MATERIALIZED (
        SELECT
        FROM unnest(the_kinds, the_names, the_versions) AS read (kind, name, version)
        INNER JOIN headrace.record_versions AS stored
            ON
                stored.kind = read.kind
                AND stored.name = read.name
                AND stored.version = read.version
        ORDER BY stored.kind, stored.name
        FOR UPDATE OF stored
    )
    SELECT count(*) INTO current_count FROM locked;
    IF current_count + new_count < cardinality(the_names) THEN
        RETURN FALSE;
    END IF;
    IF new_count > 0 THEN
        INSERT INTO headrace.records (kind, name)
        SELECT
            read.kind,
            read.name
        FROM unnest(the_kinds, the_names, the_versions) AS read (kind, name, version)
        WHERE read.version = 0
        ORDER BY read.kind, read.name
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS current_count = ROW_COUNT;
        IF current_count = 0 THEN
            RETURN FALSE;
        ELSIF current_count < new_count THEN
            RAISE EXCEPTION 'a record is there already' USING ERRCODE = 'HR001';
        END IF;
    END IF;
    DELETE FROM headrace.record_versions AS stored
    USING unnest(the_kinds, the_names, the_versions) AS read (kind, name, version)
    WHERE
        stored.kind = read.kind
        AND stored.name = read.name
        AND stored.version = read.version;
    INSERT INTO headrace.record_versions (kind, name, version, body)
    SELECT
        read.kind,
        read.name,
        read.version + 1,
        read.body
    FROM unnest(the_kinds, the_names, the_versions, the_bodies)
    AS read (kind, name, version, body);
    RETURN TRUE;
END;
$$;
