-- Whole jobs by seq. CROSS JOIN keeps SQLite from turning the order of the joins around; each join
-- is a lookup by primary key. The caller puts the rows in order: sorting here would cost a
-- temporary table.
SELECT
    jobs.seq,
    jobs.id,
    jobs.lane,
    jobs.state,
    jobs.version,
    jobs.run_at,
    jobs.updated_at,
    jobs.attempt,
    jobs.failures,
    jobs.losses,
    jobs.token,
    jobs.lease_until,
    jobs.assignee,
    jobs.assigned_at,
    jobs.scheduled_at,
    jobs.started_at,
    jobs.last_failed_at,
    jobs.finalized_at,
    jobs.failure_message,
    jobs.failure_category,
    jobs.failure_code,
    jobs.tags,
    jobs.created_at,
    jobs.key,
    jobs.previous_id,
    jobs.parent_id,
    jobs.correlation_id,
    jobs.callback_url,
    jobs.depth,
    jobs.max_attempts,
    jobs.lease_seconds,
    jobs.timeout_seconds,
    jobs.expires_at,
    jobs.backoff,
    payloads.payload,
    results.result,
    notes.progress,
    notes.progress_note,
    notes.checkpoint,
    notes.log
FROM json_each(?) AS wanted
CROSS JOIN jobs ON jobs.seq = wanted.value
CROSS JOIN payloads ON payloads.seq = jobs.seq
LEFT JOIN results ON results.seq = jobs.seq
LEFT JOIN notes ON notes.seq = jobs.seq;
