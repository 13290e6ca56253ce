-- Jobs with a tag are not claimable any more, or not at that time. Spelled out, since SQLite would
-- use only the first column of the key for a list of rows.
DELETE FROM ready_tags
WHERE (tag = ? AND lane = ? AND run_at = ? AND seq = ?);
