-- Views for readers that are not Headrace: the log by job, and the jobs themselves.

-- As before, and the seq of the job at the end, so that the events of whole jobs can be read in ranges.
CREATE OR REPLACE VIEW headrace.event_log AS
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
    events.detail,
    events.job_seq
FROM headrace.events
INNER JOIN headrace.lanes ON lanes.id = events.lane
WHERE events.xid < pg_snapshot_xmin(pg_current_snapshot());

-- The jobs as they stand, with their words spelled out. Without the lease token: whoever knows it can end the job
-- in its worker's name.
CREATE VIEW headrace.job_list AS
SELECT
    jobs.seq,
    bodies.id,
    lanes.tenant,
    lanes.queue,
    lanes.type,
    lanes.priority,
    bodies.tags,
    bodies.payload,
    jobs.state,
    jobs.version,
    jobs.attempt,
    jobs.failures,
    jobs.losses,
    bodies.created_at,
    jobs.run_at,
    jobs.updated_at,
    jobs.scheduled_at,
    jobs.assigned_at,
    jobs.started_at,
    jobs.last_failed_at,
    jobs.finalized_at,
    jobs.assignee,
    jobs.lease_until,
    jobs.failure_category AS category,
    jobs.failure_code AS code,
    jobs.failure_message AS message,
    jobs.result,
    jobs.progress,
    jobs.progress_note,
    jobs.checkpoint,
    jobs.log,
    bodies.key,
    bodies.previous_id,
    bodies.parent_id,
    bodies.correlation_id,
    bodies.callback_url,
    lanes.limit_key,
    bodies.depth,
    jobs.max_attempts,
    bodies.lease_seconds,
    bodies.timeout_seconds,
    jobs.expires_at,
    bodies.backoff
FROM headrace.jobs
INNER JOIN headrace.bodies ON bodies.seq = jobs.seq
INNER JOIN headrace.lanes ON lanes.id = jobs.lane;
