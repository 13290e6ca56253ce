-- The leases that heartbeats name, and what else may end them.
SELECT
    jobs.id, jobs.state, jobs.seq, jobs.token, jobs.lease_until, jobs.expires_at, jobs.assigned_at,
    jobs.timeout_seconds
FROM json_each(?) AS wanted
CROSS JOIN jobs ON jobs.id = wanted.value;
