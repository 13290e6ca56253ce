-- Events at the end of the log, in the order of `log.event_parameters`.
INSERT INTO events (
    at, lane, job_seq, job_id, kind, before, after, version, attempt, failures, losses, run_at,
    worker, lease_until, category, code, message,
    wait_us, run_us, payload_bytes, result_bytes, detail
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
