-- name: schema_state
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

-- name: schema_version
-- The columns but the first are not there in a schema from before they were kept.
SELECT
    version,
    to_jsonb(schema_version) ->> 'functions',
    to_jsonb(schema_version) ->> 'functions_by',
    to_jsonb(schema_version) ->> 'works_with'
FROM headrace.schema_version

-- name: schema_lock
SELECT pg_advisory_xact_lock(hashtextextended($1::text, 0))

-- name: schema_step
UPDATE headrace.schema_version SET version = version + 1

-- name: schema_columns
-- What is kept beside the version: not there in a schema from before it was.
ALTER TABLE headrace.schema_version
ADD COLUMN IF NOT EXISTS functions text,
ADD COLUMN IF NOT EXISTS functions_by text,
ADD COLUMN IF NOT EXISTS works_with integer

-- name: schema_functions
SELECT oid::regprocedure::text
FROM pg_catalog.pg_proc
WHERE pronamespace = to_regnamespace($1::text)

-- name: schema_functions_are
UPDATE headrace.schema_version SET functions = $1, functions_by = $2, works_with = $3

-- name: now
SELECT clock_timestamp()
