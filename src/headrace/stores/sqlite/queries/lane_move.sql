-- Move the counts of a lane: jobs by state, then the failures of those jobs by state, in the order
-- of the states as the model lists them. One lane each: writes seldom touch more than a few.
UPDATE lanes
SET
    blocked = blocked + ?,
    pending = pending + ?,
    running = running + ?,
    cancelling = cancelling + ?,
    retrying = retrying + ?,
    lost = lost + ?,
    completed = completed + ?,
    failed = failed + ?,
    dead = dead + ?,
    cancelled = cancelled + ?,
    abandoned = abandoned + ?,
    blocked_failures = blocked_failures + ?,
    pending_failures = pending_failures + ?,
    running_failures = running_failures + ?,
    cancelling_failures = cancelling_failures + ?,
    retrying_failures = retrying_failures + ?,
    lost_failures = lost_failures + ?,
    completed_failures = completed_failures + ?,
    failed_failures = failed_failures + ?,
    dead_failures = dead_failures + ?,
    cancelled_failures = cancelled_failures + ?,
    abandoned_failures = abandoned_failures + ?
WHERE id = ?;
