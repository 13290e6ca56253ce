-- Keep the seq of a deleted job, so that its events are still found by its id.
INSERT INTO deleted_jobs (id, seq) VALUES (?, ?);
