-- Where the jobs of a commit stand now.
SELECT jobs.id, jobs.seq, jobs.version, jobs.lease_until
FROM json_each(?) AS wanted
CROSS JOIN jobs ON jobs.id = wanted.value;
