WITH gone AS (
    DELETE FROM headrace.record_versions
    WHERE kind = $1::text AND name = $2::text AND version = $3::bigint
    RETURNING kind, name
)
DELETE FROM headrace.records
USING gone
WHERE records.kind = gone.kind AND records.name = gone.name
RETURNING records.name
