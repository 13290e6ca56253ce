-- How many claimable jobs have a tag, counted no further than the cap.
SELECT count(*) FROM (SELECT 1 FROM ready_tags WHERE tag = ? LIMIT ?);
