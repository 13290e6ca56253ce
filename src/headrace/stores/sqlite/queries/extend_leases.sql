-- The leases that heartbeats name.
SELECT jobs.id, jobs.seq, jobs.state, jobs.token, jobs.lease_until
FROM json_each(?) AS wanted
CROSS JOIN jobs ON jobs.id = wanted.value;
