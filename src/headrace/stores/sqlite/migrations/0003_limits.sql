-- Limit keys become part of the lanes; records, and the lines that handlers log.

-- A lane is all jobs of one tenant, queue, type, priority and limit key (NULL: none). There may be a
-- lane per customer, so a lane with a limit key goes with its last job. Hence AUTOINCREMENT: what
-- was known of a lane that is gone is never taken for another. Lanes without a limit key stay, and
-- events name those, whatever the job's limit key: they outlive the jobs.
-- SQLite cannot change what is unique in a table, so it is copied, and the view on it made again.
DROP VIEW event_log;

CREATE TABLE lanes_copy (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    queue TEXT NOT NULL,
    type TEXT NOT NULL,
    priority INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 4),
    limit_key TEXT,
    blocked INTEGER NOT NULL DEFAULT 0 CHECK (blocked >= 0),
    pending INTEGER NOT NULL DEFAULT 0 CHECK (pending >= 0),
    running INTEGER NOT NULL DEFAULT 0 CHECK (running >= 0),
    cancelling INTEGER NOT NULL DEFAULT 0 CHECK (cancelling >= 0),
    retrying INTEGER NOT NULL DEFAULT 0 CHECK (retrying >= 0),
    lost INTEGER NOT NULL DEFAULT 0 CHECK (lost >= 0),
    completed INTEGER NOT NULL DEFAULT 0 CHECK (completed >= 0),
    failed INTEGER NOT NULL DEFAULT 0 CHECK (failed >= 0),
    dead INTEGER NOT NULL DEFAULT 0 CHECK (dead >= 0),
    cancelled INTEGER NOT NULL DEFAULT 0 CHECK (cancelled >= 0),
    abandoned INTEGER NOT NULL DEFAULT 0 CHECK (abandoned >= 0),
    blocked_failures INTEGER NOT NULL DEFAULT 0 CHECK (blocked_failures >= 0),
    pending_failures INTEGER NOT NULL DEFAULT 0 CHECK (pending_failures >= 0),
    running_failures INTEGER NOT NULL DEFAULT 0 CHECK (running_failures >= 0),
    cancelling_failures INTEGER NOT NULL DEFAULT 0 CHECK (cancelling_failures >= 0),
    retrying_failures INTEGER NOT NULL DEFAULT 0 CHECK (retrying_failures >= 0),
    lost_failures INTEGER NOT NULL DEFAULT 0 CHECK (lost_failures >= 0),
    completed_failures INTEGER NOT NULL DEFAULT 0 CHECK (completed_failures >= 0),
    failed_failures INTEGER NOT NULL DEFAULT 0 CHECK (failed_failures >= 0),
    dead_failures INTEGER NOT NULL DEFAULT 0 CHECK (dead_failures >= 0),
    cancelled_failures INTEGER NOT NULL DEFAULT 0 CHECK (cancelled_failures >= 0),
    abandoned_failures INTEGER NOT NULL DEFAULT 0 CHECK (abandoned_failures >= 0)
) STRICT;

INSERT INTO lanes_copy (
    id,
    tenant,
    queue,
    type,
    priority,
    blocked,
    pending,
    running,
    cancelling,
    retrying,
    lost,
    completed,
    failed,
    dead,
    cancelled,
    abandoned,
    blocked_failures,
    pending_failures,
    running_failures,
    cancelling_failures,
    retrying_failures,
    lost_failures,
    completed_failures,
    failed_failures,
    dead_failures,
    cancelled_failures,
    abandoned_failures
)
SELECT
    id,
    tenant,
    queue,
    type,
    priority,
    blocked,
    pending,
    running,
    cancelling,
    retrying,
    lost,
    completed,
    failed,
    dead,
    cancelled,
    abandoned,
    blocked_failures,
    pending_failures,
    running_failures,
    cancelling_failures,
    retrying_failures,
    lost_failures,
    completed_failures,
    failed_failures,
    dead_failures,
    cancelled_failures,
    abandoned_failures
FROM lanes;

DROP TABLE lanes;

ALTER TABLE lanes_copy RENAME TO lanes;

-- Two indexes, since NULL never equals NULL in a unique index.
CREATE UNIQUE INDEX lanes_by_key ON lanes (tenant, queue, type, priority, limit_key);
CREATE UNIQUE INDEX lanes_without_key ON lanes (tenant, queue, type, priority)
WHERE limit_key IS NULL;

-- The lanes a claim looks at. Lanes that have drained cost it nothing, nor do those of queues that
-- it is not for.
CREATE INDEX lanes_claimable ON lanes (queue) WHERE pending + retrying + lost > 0;

-- The log with its words spelled out, for readers that are not Headrace.
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
    events.detail
FROM events
INNER JOIN lanes ON lanes.id = events.lane;

ALTER TABLE notes ADD COLUMN log BLOB;

-- Small named documents. Not WITHOUT ROWID: so the names of a kind are read without the bodies.
CREATE TABLE records (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 1),
    body BLOB NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT;
