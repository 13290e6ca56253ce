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
