-- Keep the seqs of deleted jobs, so that their events are still found by id.
INSERT INTO deleted_jobs (id, seq) VALUES (?, ?);
