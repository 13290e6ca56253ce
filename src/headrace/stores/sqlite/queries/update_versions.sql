-- Where the jobs that are to be updated stand now.
SELECT
    jobs.id,
    jobs.seq,
    jobs.lane,
    jobs.version,
    jobs.state
FROM json_each(?) AS wanted
CROSS JOIN jobs ON jobs.id = wanted.value;
