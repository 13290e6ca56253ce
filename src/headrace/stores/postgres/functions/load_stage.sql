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
