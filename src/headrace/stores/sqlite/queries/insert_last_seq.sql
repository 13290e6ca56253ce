-- The last seq given to a job, 0 before the first; it stays when the job is deleted.
SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'jobs';
