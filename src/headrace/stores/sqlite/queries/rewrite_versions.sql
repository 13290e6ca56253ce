-- Where the jobs that are to be rewritten stand now; leased ones are left out.
SELECT jobs.id, jobs.seq, jobs.version
FROM json_each(?) AS wanted
CROSS JOIN jobs ON jobs.id = wanted.value
WHERE jobs.token IS NULL;
