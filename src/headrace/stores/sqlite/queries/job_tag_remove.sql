-- A job that had a tag is deleted.
DELETE FROM job_tags WHERE tag = ? AND seq = ?;
