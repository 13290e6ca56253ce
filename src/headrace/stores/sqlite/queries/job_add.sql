-- The rows of new jobs, in the order of `rows.insert_parameters`.
INSERT INTO jobs (
    seq, id, lane,
    state, version, run_at, updated_at, attempt, failures, losses,
    token, lease_until, assignee, assigned_at,
    scheduled_at, started_at, last_failed_at, finalized_at,
    failure_message, failure_category, failure_code,
    tags, created_at, key, previous_id, parent_id, correlation_id, callback_url, depth,
    max_attempts, lease_seconds, timeout_seconds, expires_at, backoff
)
VALUES
(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
