-- Jobs that had a tag are deleted. Spelled out, since SQLite would use only the first column of the
-- key for a list of rows.
DELETE FROM job_tags
WHERE (tag = ? AND seq = ?);
