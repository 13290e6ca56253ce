-- A job as the store reads it: one row, in the order of the columns that rows.py expects.
CREATE VIEW headrace.job_rows AS
SELECT
    jobs.seq,
    bodies.id,
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
    bodies.tags,
    bodies.created_at,
    bodies.key,
    bodies.previous_id,
    bodies.parent_id,
    bodies.correlation_id,
    bodies.callback_url,
    bodies.depth,
    jobs.max_attempts,
    bodies.lease_seconds,
    bodies.timeout_seconds,
    jobs.expires_at,
    bodies.backoff,
    bodies.payload,
    jobs.result,
    jobs.progress,
    jobs.progress_note,
    jobs.checkpoint
FROM headrace.jobs
INNER JOIN headrace.bodies ON bodies.seq = jobs.seq;

-- The log with its words spelled out and its cursor, for readers that are not Headrace. It ends where
-- reading is safe: below the oldest transaction that still runs.
CREATE VIEW headrace.event_log AS
SELECT
    events.xid::text || ':' || events.seq::text AS cursor,
    events.xid,
    events.seq,
    events.at,
    lanes.tenant,
    lanes.queue,
    lanes.type,
    lanes.priority,
    events.job_id,
    events.kind,
    events.before,
    events.after,
    events.version,
    events.attempt,
    events.failures,
    events.losses,
    events.run_at,
    events.worker,
    events.lease_until,
    events.category,
    events.code,
    events.message,
    events.wait_us,
    events.run_us,
    events.payload_bytes,
    events.result_bytes,
    events.detail
FROM headrace.events
INNER JOIN headrace.lanes ON lanes.id = events.lane
WHERE events.xid < pg_snapshot_xmin(pg_current_snapshot());
