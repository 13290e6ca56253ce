-- A new job has a tag.
INSERT INTO job_tags (tag, seq) VALUES (?, ?);
