-- Delete a record as it was read.
DELETE FROM records WHERE kind = ? AND name = ? AND version = ?;
