-- All records of a kind, by name.
SELECT name, version, body
FROM records
WHERE kind = ?
ORDER BY name;
