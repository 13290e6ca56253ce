-- Jobs are deleted: their keys go with them, except those that another job holds by now. Spelled
-- out, since SQLite would read the whole table for a list of rows.
DELETE FROM keys
WHERE (tenant = ? AND queue = ? AND type = ? AND key = ? AND job_id = ?);
