-- name: records
-- All records of a kind, by name.
SELECT name, version, body
FROM records
WHERE kind = ?
ORDER BY name

-- name: records_named
-- The named records of a kind; the caller sorts.
SELECT records.name, records.version, records.body
FROM json_each(?) AS wanted
CROSS JOIN records ON records.kind = ? AND records.name = wanted.value

-- name: record_version
SELECT version FROM records WHERE kind = ? AND name = ?

-- name: record_put
-- A record in its next version. The writer has compared the version in the same transaction.
INSERT INTO records (kind, name, version, body) VALUES (?, ?, ?, ?)
ON CONFLICT (kind, name) DO UPDATE
SET version = excluded.version, body = excluded.body

-- name: record_delete
-- Delete a record as it was read.
DELETE FROM records WHERE kind = ? AND name = ? AND version = ?
