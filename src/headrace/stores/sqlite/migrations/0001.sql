-- Jobs, the graph between them, their keys, the event log, queues and records; and views for readers that
-- are not Headrace.
-- Times are microseconds since the epoch, in UTC. Every table is STRICT: a wrong type is an error.

-- A lane is all jobs of one tenant, queue, type, priority and limit key (NULL: none). It counts its jobs by
-- state, and the failures of those jobs; each write that moves a job moves the counts in the same transaction.
-- So counting reads lanes only, and a claim knows which lanes are worth a probe.
-- Keys never change. There may be a lane per customer, so a lane with a limit key goes with its last job; hence
-- AUTOINCREMENT: what was known of a lane that is gone is never taken for another. Lanes without a limit key
-- stay, and events name those, whatever the job's limit key: they outlive the jobs.
CREATE TABLE lanes (
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

-- Two indexes, since NULL never equals NULL in a unique index.
CREATE UNIQUE INDEX lanes_by_key ON lanes (tenant, queue, type, priority, limit_key);
CREATE UNIQUE INDEX lanes_without_key ON lanes (tenant, queue, type, priority)
WHERE limit_key IS NULL;

-- The lanes a claim looks at. Lanes that have drained cost it nothing, nor do those of queues that
-- it is not for.
CREATE INDEX lanes_claimable ON lanes (queue) WHERE pending + retrying + lost > 0;

-- The narrow part of a job, rewritten by each change. What never changes and may be large
-- (payload), and what most jobs do not have (result, notes), stands in tables of its own.
-- AUTOINCREMENT: the seq of a deleted job is never given again, so pages and the log stay in order.
CREATE TABLE jobs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    lane INTEGER NOT NULL,
    -- where it stands
    state TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 1),
    run_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    attempt INTEGER NOT NULL CHECK (attempt >= 0),
    failures INTEGER NOT NULL CHECK (failures >= 0),
    losses INTEGER NOT NULL CHECK (losses >= 0),
    token TEXT,
    lease_until INTEGER,
    assignee TEXT,
    assigned_at INTEGER,
    scheduled_at INTEGER,
    started_at INTEGER,
    last_failed_at INTEGER,
    finalized_at INTEGER,
    failure_message TEXT,
    failure_category TEXT,
    failure_code TEXT,
    -- who it is and how it may run: never changes
    tags TEXT NOT NULL, -- a JSON list
    created_at INTEGER NOT NULL,
    key TEXT,
    previous_id TEXT,
    parent_id TEXT,
    correlation_id TEXT,
    callback_url TEXT,
    depth INTEGER NOT NULL CHECK (depth >= 0),
    max_attempts INTEGER CHECK (max_attempts >= 1),
    lease_seconds REAL,
    timeout_seconds REAL,
    expires_at INTEGER,
    backoff BLOB,
    -- The lifecycle's invariants, so that no bug of ours can store a job that breaks them. Spelled
    -- with OR: for each row, SQLite would build a temporary index out of a longer IN list.
    CONSTRAINT state_fits_lease_and_end
    CHECK (
        CASE
            WHEN token IS NOT NULL
                THEN (state = 'running' OR state = 'cancelling') AND finalized_at IS NULL
            WHEN finalized_at IS NOT NULL
                THEN
                    lease_until IS NULL
                    AND (
                        state = 'completed' OR state = 'failed' OR state = 'dead'
                        OR state = 'cancelled' OR state = 'abandoned'
                    )
            ELSE
                lease_until IS NULL
                AND (
                    state = 'pending' OR state = 'retrying' OR state = 'lost' OR state = 'blocked'
                )
        END
    ),
    CONSTRAINT failure_is_whole
    CHECK (
        CASE
            WHEN failure_message IS NULL THEN failure_category IS NULL AND failure_code IS NULL
            ELSE
                failure_category IS NOT NULL
                AND (
                    failure_category = 'temporary' OR failure_category = 'permanent'
                    OR failure_category = 'timeout' OR failure_category = 'cancelled'
                    OR failure_category = 'system'
                )
        END
    ),
    CONSTRAINT budget_kept
    CHECK (max_attempts IS NULL OR failures + losses <= max_attempts)
) STRICT;

-- Claims: the due jobs of one lane in claim order. `state` is there so that counting the jobs that
-- are not due yet never reads a row. Queries repeat the condition word for word, or SQLite would
-- not see that the index serves them.
CREATE INDEX jobs_ready ON jobs (lane, run_at, seq, state)
WHERE state = 'pending' OR state = 'retrying' OR state = 'lost';

-- The reaper, and the jobs of one worker.
CREATE INDEX jobs_leased ON jobs (lease_until) WHERE token IS NOT NULL;

-- Jobs whose lifetime may end.
CREATE INDEX jobs_lifetime ON jobs (expires_at)
WHERE finalized_at IS NULL AND expires_at IS NOT NULL;

-- Retention, and finding ended jobs.
CREATE INDEX jobs_ended ON jobs (state, finalized_at) WHERE finalized_at IS NOT NULL;

-- Finding the jobs of a tenant, queue or type, and those that wait for others. Both are written
-- when a job comes and goes, and hardly in between.
CREATE INDEX jobs_of_lane ON jobs (lane);
CREATE INDEX jobs_blocked ON jobs (lane) WHERE state = 'blocked';

-- What a job has spawned: a join submitted later waits for it, too.
CREATE INDEX jobs_spawned ON jobs (parent_id) WHERE parent_id IS NOT NULL;

CREATE TABLE payloads (
    seq INTEGER PRIMARY KEY,
    payload BLOB NOT NULL
) STRICT;

CREATE TABLE results (
    seq INTEGER PRIMARY KEY,
    result BLOB NOT NULL
) STRICT;

CREATE TABLE notes (
    seq INTEGER PRIMARY KEY,
    progress REAL,
    progress_note TEXT,
    checkpoint BLOB,
    log BLOB
) STRICT;

-- Which jobs have a tag: written when a job comes and goes.
CREATE TABLE job_tags (
    tag TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (tag, seq)
) STRICT, WITHOUT ROWID;

-- The claimable ones of them, in claim order: so that a claim by a rare tag is a probe, not a walk.
CREATE TABLE ready_tags (
    tag TEXT NOT NULL,
    lane INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (tag, lane, run_at, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE keys (
    tenant TEXT NOT NULL,
    queue TEXT NOT NULL,
    type TEXT NOT NULL,
    key TEXT NOT NULL,
    job_id TEXT NOT NULL,
    expires_at INTEGER,
    released_when_terminal INTEGER NOT NULL CHECK (released_when_terminal IN (0, 1)),
    PRIMARY KEY (tenant, queue, type, key)
) STRICT, WITHOUT ROWID;

-- `needed`: the parent must complete (every kind but after_any).
CREATE TABLE edges (
    ord INTEGER PRIMARY KEY,
    parent_id TEXT NOT NULL,
    child_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('after', 'after_any', 'chain', 'fan_out', 'fan_in')),
    needed INTEGER NOT NULL GENERATED ALWAYS AS (kind <> 'after_any') STORED,
    outcome TEXT CHECK (outcome IN ('completed', 'failed', 'dead', 'cancelled', 'abandoned')),
    seen INTEGER NOT NULL CHECK (seen IN (0, 1)),
    UNIQUE (parent_id, child_id)
) STRICT;

-- A join asks whether there is an edge with this outcome: one probe each, however many there are.
CREATE INDEX edges_into ON edges (child_id, needed, outcome);

CREATE INDEX edges_unseen ON edges (ord) WHERE outcome IS NOT NULL AND seen = 0;

-- The log. Gap-free: one transaction at a time appends, and one that is rolled back takes its
-- numbers with it. AUTOINCREMENT: a number stays used when its event has been trimmed. Tenant,
-- queue, type and priority are the lane's.
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    job_seq INTEGER NOT NULL,
    job_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    before TEXT,
    after TEXT NOT NULL,
    version INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    worker TEXT,
    lease_until INTEGER,
    category TEXT,
    code TEXT,
    message TEXT,
    wait_us INTEGER,
    run_us INTEGER,
    payload_bytes INTEGER,
    result_bytes INTEGER,
    detail BLOB
) STRICT;

-- One job's events. By the job's seq, not its id: neighbours in time are neighbours in the index,
-- so a batch of a hundred touches a page or two instead of a hundred.
CREATE INDEX events_of_job ON events (job_seq);

-- The seqs of deleted jobs, so that their events are still found by id.
CREATE TABLE deleted_jobs (
    id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (id, seq)
) STRICT, WITHOUT ROWID;

-- Pauses of queues, and the workers that asked for jobs.
CREATE TABLE pauses (
    queue TEXT NOT NULL,
    tenant TEXT, -- NULL: for every tenant
    since INTEGER NOT NULL
) STRICT;

-- Two indexes, since NULL never equals NULL in a unique index.
CREATE UNIQUE INDEX pauses_of_tenant ON pauses (queue, tenant) WHERE tenant IS NOT NULL;
CREATE UNIQUE INDEX pauses_of_all ON pauses (queue) WHERE tenant IS NULL;

-- The filters are JSON lists; NULL: it does not filter. A worker says how many handlers it runs at once, and how
-- many it ran then; NULL: it did not say.
CREATE TABLE workers (
    worker TEXT PRIMARY KEY,
    seen_at INTEGER NOT NULL,
    tenant TEXT,
    queues TEXT,
    types TEXT,
    tags TEXT NOT NULL,
    slots INTEGER,
    busy INTEGER,
    process TEXT -- JSON: host, pid, version, started_at, draining; NULL: it did not say
) STRICT, WITHOUT ROWID;

-- Small named documents. Not WITHOUT ROWID: so the names of a kind are read without the bodies.
CREATE TABLE records (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 1),
    body BLOB NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT;

-- The log with its words spelled out. At the end the seq of the job, so that the events of whole jobs can be
-- read in ranges, and the lane, so that who reads many need not have its words spelled out in every row. Every
-- lane that an event names is there; with LEFT, SQLite leaves the join out where nothing of the lane is asked for.
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
