-- Where the parents named by an insertion stand now.
SELECT jobs.id, jobs.state
FROM json_each(?) AS wanted
CROSS JOIN jobs ON jobs.id = wanted.value;
