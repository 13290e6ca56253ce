-- Whether the schema exists, whether anything is in it, and whether its table of versions is.
SELECT
    to_regnamespace($1::text) IS NOT NULL,
    EXISTS (
        SELECT FROM pg_catalog.pg_class
        WHERE relnamespace = to_regnamespace($1::text)
    ),
    EXISTS (
        SELECT FROM pg_catalog.pg_class
        WHERE relnamespace = to_regnamespace($1::text) AND relname = 'schema_version'
    )
