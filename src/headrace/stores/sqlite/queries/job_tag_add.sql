-- New jobs have these tags.
INSERT INTO job_tags (tag, seq) VALUES (?, ?);
