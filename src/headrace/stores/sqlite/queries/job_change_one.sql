-- As job_change.sql for a single row: joining a list, however short, costs SQLite a temporary
-- table.
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
