-- name: records
SELECT * FROM {calls.read_records}

-- name: put_record
SELECT headrace.put_records(ARRAY[$1::text], ARRAY[$2::text], ARRAY[$3::bigint], ARRAY[$4::bytea])

-- name: delete_record
WITH gone AS (
    DELETE FROM headrace.record_versions
    WHERE kind = $1::text AND name = $2::text AND version = $3::bigint
    RETURNING kind, name
)
DELETE FROM headrace.records
USING gone
WHERE records.kind = gone.kind AND records.name = gone.name
RETURNING records.name
