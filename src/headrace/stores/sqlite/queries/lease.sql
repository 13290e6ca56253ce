-- The lease of one job.
SELECT seq, token, lease_until FROM jobs WHERE id = ?;
