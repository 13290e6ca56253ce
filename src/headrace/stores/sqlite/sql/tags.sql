-- name: job_tag_add
-- New jobs have these tags.
INSERT INTO job_tags (tag, seq) VALUES (?, ?)

-- name: job_tag_remove
-- Jobs that had a tag are deleted. Spelled out, since SQLite would use only the first column of the
-- key for a list of rows.
DELETE FROM job_tags
WHERE (tag = ? AND seq = ?)

-- name: ready_tag_add
-- Jobs with a tag have become claimable, or claimable at another time.
INSERT INTO ready_tags (tag, lane, run_at, seq) VALUES (?, ?, ?, ?)

-- name: ready_tag_remove
-- Jobs with a tag are not claimable any more, or not at that time.
DELETE FROM ready_tags
WHERE (tag = ? AND lane = ? AND run_at = ? AND seq = ?)

-- name: tag_jobs_capped
-- How many jobs have a tag, counted no further than the cap: enough to tell rare from common.
SELECT count(*) FROM (SELECT 1 FROM job_tags WHERE tag = ? LIMIT ?)

-- name: tag_ready_capped
-- How many claimable jobs have a tag, counted no further than the cap.
SELECT count(*) FROM (SELECT 1 FROM ready_tags WHERE tag = ? LIMIT ?)
