-- How many jobs have a tag, counted no further than the cap: enough to tell rare from common.
SELECT count(*) FROM (SELECT 1 FROM job_tags WHERE tag = ? LIMIT ?);
