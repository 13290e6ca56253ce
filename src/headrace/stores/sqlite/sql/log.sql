-- name: event_add
-- Events at the end of the log, in the order of `rows.event_columns`.
INSERT INTO events (
    {event.inserted}
)
VALUES ({event.marks})

-- fragment: of_lanes
-- Of one tenant's lanes, if they are given.
(:lanes IS NULL OR lane IN (SELECT value FROM json_each(:lanes)))

-- name: events
-- The log after a cursor.
SELECT
    {event.columns}
FROM events
WHERE seq > :after AND {of_lanes}
ORDER BY seq
LIMIT :limit

-- name: events_of_job
-- The events of one job id: of the job that has it, and of those deleted that had it before.
SELECT
    {event.columns}
FROM events
WHERE
    job_seq IN (
        SELECT jobs.seq FROM jobs WHERE jobs.id = :job_id
        UNION ALL
        SELECT deleted_jobs.seq FROM deleted_jobs WHERE deleted_jobs.id = :job_id
    )
    AND seq > :after
    AND {of_lanes}
ORDER BY seq
LIMIT :limit

-- name: events_lanes
-- The lanes by which events name one tenant: those without a limit key.
SELECT json_group_array(id)
FROM lanes INDEXED BY lanes_without_key
WHERE tenant = ? AND limit_key IS NULL

-- name: log_start
-- The last number that was trimmed from the log, 0 if none was: numbers have no gaps, so it is the one
-- before the first event or, where all are gone, the last that was given.
SELECT coalesce(
    (SELECT min(seq) - 1 FROM events),
    (SELECT max(seq) FROM sqlite_sequence WHERE name = 'events'),
    0
)

-- name: tail
-- The last number the log has given, 0 before the first; it stays when events are trimmed.
SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'events'

-- name: trim_last
-- The last event that may go, in log order: none after :upto, none of :before or later, no more than :limit.
-- NULL: there is none. Numbers have no gaps.
WITH oldest AS MATERIALIZED (
    SELECT seq, at FROM events WHERE seq <= :upto ORDER BY seq LIMIT :limit
)

SELECT coalesce((SELECT min(seq) - 1 FROM oldest WHERE at >= :before), (SELECT max(seq) FROM oldest))

-- name: trim_deleted
-- Forget the deleted jobs whose last event is about to go: nothing is left to be found by their ids.
DELETE FROM deleted_jobs
WHERE
    (id, seq) IN (
        SELECT gone.job_id, gone.job_seq
        FROM events AS gone
        WHERE
            gone.seq <= :last
            AND NOT EXISTS (
                SELECT 1 FROM events WHERE events.job_seq = gone.job_seq AND events.seq > :last
            )
    )

-- name: trim_events
-- Everything up to and with this event.
DELETE FROM events WHERE seq <= :last
