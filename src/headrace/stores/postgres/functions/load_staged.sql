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
