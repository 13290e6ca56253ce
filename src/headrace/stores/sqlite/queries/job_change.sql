-- A job's row after a change, in the order of `rows.change_parameters`. The writer has compared the
-- version in the same transaction.
UPDATE jobs
SET
    state = ?,
    version = ?,
    run_at = ?,
    updated_at = ?,
    attempt = ?,
    failures = ?,
    losses = ?,
    token = ?,
    lease_until = ?,
    assignee = ?,
    assigned_at = ?,
    scheduled_at = ?,
    started_at = ?,
    last_failed_at = ?,
    finalized_at = ?,
    failure_message = ?,
    failure_category = ?,
    failure_code = ?
WHERE seq = ?;
