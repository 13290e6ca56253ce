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
