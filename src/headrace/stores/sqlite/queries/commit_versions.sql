-- Where the jobs of a commit stand now. As one value, [[id, seq, version, lease_until], ...], since
-- each row would be one more step.
SELECT json_group_array(json_array(jobs.id, jobs.seq, jobs.version, jobs.lease_until))
FROM json_each(?) AS wanted
CROSS JOIN jobs ON jobs.id = wanted.value;
