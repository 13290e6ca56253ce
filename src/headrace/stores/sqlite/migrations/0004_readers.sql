-- Views for readers that are not Headrace: the log by job, and the jobs themselves.

-- As before, and at the end the seq of the job, so that the events of whole jobs can be read in ranges,
-- and the lane, so that who reads many need not have its words spelled out in every row. Every lane that
-- an event names is there; with LEFT, SQLite leaves the join out where nothing of the lane is asked for.
DROP VIEW event_log;

CREATE VIEW event_log AS
SELECT
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
    events.job_seq,
    events.lane
FROM events
LEFT JOIN lanes ON lanes.id = events.lane;

-- The lanes that events name.
CREATE VIEW event_lanes AS
SELECT
    lanes.id,
    lanes.tenant,
    lanes.queue,
    lanes.type,
    lanes.priority
FROM lanes
WHERE lanes.limit_key IS NULL;

-- Where the log begins and ends: all up to `start` has been trimmed, `end` is the last number given.
CREATE VIEW log_ends AS
SELECT
    coalesce(
        (SELECT min(events.seq) - 1 FROM events),
        (SELECT max(numbers.seq) FROM sqlite_sequence AS numbers WHERE numbers.name = 'events'),
        0
    ) AS "start",
    coalesce(
        (SELECT max(numbers.seq) FROM sqlite_sequence AS numbers WHERE numbers.name = 'events'), 0
    ) AS "end";

-- The jobs as they stand, with their words spelled out. Without the lease token: whoever knows it can
-- end the job in its worker's name.
CREATE VIEW job_list AS
SELECT
    jobs.seq,
    jobs.id,
    lanes.tenant,
    lanes.queue,
    lanes.type,
    lanes.priority,
    jobs.tags,
    payloads.payload,
    jobs.state,
    jobs.version,
    jobs.attempt,
    jobs.failures,
    jobs.losses,
    jobs.created_at,
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
    results.result,
    notes.progress,
    notes.progress_note,
    notes.checkpoint,
    notes.log,
    jobs.key,
    jobs.previous_id,
    jobs.parent_id,
    jobs.correlation_id,
    jobs.callback_url,
    lanes.limit_key,
    jobs.depth,
    jobs.max_attempts,
    jobs.lease_seconds,
    jobs.timeout_seconds,
    jobs.expires_at,
    jobs.backoff
FROM jobs
INNER JOIN lanes ON lanes.id = jobs.lane
INNER JOIN payloads ON payloads.seq = jobs.seq
LEFT JOIN results ON results.seq = jobs.seq
LEFT JOIN notes ON notes.seq = jobs.seq;
