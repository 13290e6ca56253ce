-- The lease of one job, and what else may end it.
SELECT seq, token, lease_until, expires_at, assigned_at, timeout_seconds FROM jobs WHERE id = ?;
