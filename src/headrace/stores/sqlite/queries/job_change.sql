-- Job rows after changes, in the order of `rows.change_parameters`. The writer has compared the
-- versions in the same transaction.
UPDATE jobs
SET
    state = new.column1,
    version = new.column2,
    run_at = new.column3,
    updated_at = new.column4,
    attempt = new.column5,
    failures = new.column6,
    losses = new.column7,
    token = new.column8,
    lease_until = new.column9,
    assignee = new.column10,
    assigned_at = new.column11,
    scheduled_at = new.column12,
    started_at = new.column13,
    last_failed_at = new.column14,
    finalized_at = new.column15,
    failure_message = new.column16,
    failure_category = new.column17,
    failure_code = new.column18
FROM (
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
) AS new
WHERE jobs.seq = new.column19;
