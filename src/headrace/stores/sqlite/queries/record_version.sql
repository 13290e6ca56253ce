-- The version of a record.
SELECT version FROM records WHERE kind = ? AND name = ?;
