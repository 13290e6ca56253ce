-- The columns but the first are not there in a schema from before they were kept.
SELECT
    version,
    to_jsonb(schema_version) ->> 'functions',
    to_jsonb(schema_version) ->> 'functions_by',
    to_jsonb(schema_version) ->> 'works_with'
FROM headrace.schema_version
