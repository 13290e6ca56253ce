SELECT oid::regprocedure::text
FROM pg_catalog.pg_proc
WHERE pronamespace = to_regnamespace($1::text)
