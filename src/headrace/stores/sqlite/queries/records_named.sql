-- The named records of a kind; the caller sorts.
SELECT records.name, records.version, records.body
FROM json_each(?) AS wanted
CROSS JOIN records ON records.kind = ? AND records.name = wanted.value;
