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
