-- Take the staged rows of these attempts into load_rows, and how many there were. Group numbers are moved, so that
-- each attempt has its own.
CREATE FUNCTION headrace.load_staged(
    table_name text, parts integer[], attempts bigint[], first_groups integer[]
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    taken bigint;
BEGIN
    EXECUTE 'INSERT INTO pg_temp.load_rows (group_number, id, key, key_json, run_at, payload)'
        ' SELECT staged.group_number + chosen.first_group, staged.id, staged.key, staged.key_json,'
        ' staged.run_at, staged.payload'
        ' FROM headrace.' || quote_ident(table_name) || ' AS staged'
        ' INNER JOIN unnest($1, $2, $3) AS chosen (part, attempt, first_group)'
        ' ON chosen.part = staged.part AND chosen.attempt = staged.attempt'
        ' ORDER BY staged.part, staged.row_number'
    USING parts, attempts, first_groups;
    GET DIAGNOSTICS taken = ROW_COUNT;
    RETURN taken;
END;
$$;
