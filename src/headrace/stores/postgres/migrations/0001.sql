-- Everything: jobs, the graph between them, their keys, the event log, queues, workers, records, and views.
-- Autovacuum leaves the tables alone while they are small. A table that was never looked at counts as ten
-- pages to the planner, and plans for that are good for a million rows; plans for "three rows", from
-- an early look, would be kept by busy connections until the next.
-- No foreign keys: each would cost a trigger call per row on the hot path, and everything that belongs
-- together is written, and deleted, by one function in one transaction.

-- A lane is all jobs of one tenant, queue, type, priority and limit key. Lanes are only ever added and never
-- change, so every process may keep their ids in memory. There may be many thousands of them, most of them empty:
-- see open_lanes. They hold no counts: a row that all workers update would make them wait for each other.
CREATE TABLE headrace.lanes (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    queue text NOT NULL,
    type text NOT NULL,
    priority smallint NOT NULL CHECK (priority BETWEEN 0 AND 4),
    limit_key text,
    CONSTRAINT lanes_identity UNIQUE NULLS NOT DISTINCT (tenant, queue, type, priority, limit_key)
);

CREATE SEQUENCE headrace.job_seqs;

-- What never changes about a job: written once, read by claims, never rewritten.
CREATE TABLE headrace.bodies (
    seq bigint PRIMARY KEY,
    created_at timestamptz NOT NULL,
    lease_seconds double precision CHECK (lease_seconds >= 0),
    timeout_seconds double precision CHECK (timeout_seconds >= 0),
    lane integer NOT NULL,
    depth integer NOT NULL CHECK (depth >= 0),
    id text NOT NULL UNIQUE,
    key text,
    previous_id text,
    parent_id text,
    correlation_id text,
    callback_url text,
    tags text[] NOT NULL,
    backoff bytea,
    payload bytea NOT NULL
) WITH (
    autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_insert_threshold = 10000,
    autovacuum_analyze_threshold = 10000
);

-- Finding the jobs of a tenant, queue or type.
CREATE INDEX bodies_of_lane ON headrace.bodies (lane, seq);

-- What a job has spawned.
CREATE INDEX bodies_spawned ON headrace.bodies (parent_id, seq) WHERE parent_id IS NOT NULL;

-- Where a job stands: the narrow part, rewritten by each change. Result and notes are here too: they are
-- NULL until the end and large ones are stored out of line, so a table of their own would only cost
-- a second write.
-- The free space lets a new version of a row stay on its page: heartbeats and notes, which touch no
-- indexed column, then write no index at all.
CREATE TABLE headrace.jobs (
    seq bigint PRIMARY KEY,
    run_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    lane integer NOT NULL,
    version integer NOT NULL CHECK (version >= 1),
    attempt integer NOT NULL CHECK (attempt >= 0),
    failures integer NOT NULL CHECK (failures >= 0),
    losses integer NOT NULL CHECK (losses >= 0),
    max_attempts integer CHECK (max_attempts >= 1),
    early boolean NOT NULL, -- it became claimable with a due time in the past: see pick_jobs
    state text NOT NULL CHECK (
        state IN (
            'blocked', 'pending', 'running', 'cancelling', 'retrying', 'lost',
            'completed', 'failed', 'dead', 'cancelled', 'abandoned'
        )
    ),
    lease_us bigint, -- lease_seconds as the whole microseconds that a claim adds
    expires_at timestamptz,
    lease_until timestamptz,
    assigned_at timestamptz,
    scheduled_at timestamptz,
    started_at timestamptz,
    last_failed_at timestamptz,
    finalized_at timestamptz,
    progress double precision,
    token text,
    assignee text,
    failure_category text CHECK (
        failure_category IN ('temporary', 'permanent', 'timeout', 'cancelled', 'system')
    ),
    failure_code text,
    failure_message text,
    progress_note text,
    result bytea,
    checkpoint bytea,
    log bytea, -- the last lines that handlers have logged
    -- The lifecycle's invariants, so that no bug of ours can store a job that breaks them.
    CONSTRAINT token_exactly_while_leased
    CHECK ((token IS NOT NULL) = (state IN ('running', 'cancelling'))),
    CONSTRAINT lease_only_while_leased
    CHECK (lease_until IS NULL OR token IS NOT NULL),
    CONSTRAINT finalized_exactly_while_terminal
    CHECK (
        (finalized_at IS NOT NULL)
        = (state IN ('completed', 'failed', 'dead', 'cancelled', 'abandoned'))
    ),
    CONSTRAINT failure_has_message_and_category
    CHECK (
        (failure_message IS NULL) = (failure_category IS NULL)
        AND (failure_code IS NULL OR failure_message IS NOT NULL)
    ),
    CONSTRAINT budget_kept
    CHECK (max_attempts IS NULL OR failures + losses <= max_attempts)
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_insert_threshold = 10000,
    autovacuum_analyze_threshold = 10000
);

-- Claims: the waiting jobs of one lane in claim order.
CREATE INDEX jobs_ready ON headrace.jobs (lane, early, run_at, seq)
WHERE state IN ('pending', 'retrying', 'lost');

-- The jobs a worker holds, and (walked whole) the leases that have lapsed. lease_until is not part of it:
-- every heartbeat would have to write the index.
CREATE INDEX jobs_leased ON headrace.jobs (assignee) WHERE state IN ('running', 'cancelling');

-- Jobs whose lifetime may end.
CREATE INDEX jobs_lifetime ON headrace.jobs (expires_at)
WHERE finalized_at IS NULL AND expires_at IS NOT NULL;

-- Retention, and finding ended jobs.
CREATE INDEX jobs_ended ON headrace.jobs (state, finalized_at) WHERE finalized_at IS NOT NULL;

-- Finding jobs that wait for others.
CREATE INDEX jobs_blocked ON headrace.jobs (seq) WHERE state = 'blocked';

-- Which jobs have a tag: written when a job comes and goes.
CREATE TABLE headrace.job_tags (
    tag text NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (tag, seq)
) WITH (
    autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_insert_threshold = 10000,
    autovacuum_analyze_threshold = 10000
);

-- The waiting ones of them in claim order, so that a claim by a rare tag is a probe, not a walk.
CREATE TABLE headrace.ready_tags (
    tag text NOT NULL,
    lane integer NOT NULL,
    early boolean NOT NULL,
    run_at timestamptz NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (tag, lane, early, run_at, seq)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_insert_threshold = 10000,
    autovacuum_analyze_threshold = 10000
);

CREATE TABLE headrace.keys (
    tenant text NOT NULL,
    queue text NOT NULL,
    type text NOT NULL,
    key text NOT NULL,
    job_id text NOT NULL,
    expires_at timestamptz, -- NULL: held without end
    released_when_terminal boolean NOT NULL,
    PRIMARY KEY (tenant, queue, type, key)
) WITH (
    autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_insert_threshold = 10000,
    autovacuum_analyze_threshold = 10000
);

-- By ids, not seqs: an edge outlives its parent when an ended parent is deleted.
-- `needed`: the parent must complete (every kind but after_any).
CREATE TABLE headrace.edges (
    ord bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    parent_id text NOT NULL,
    child_id text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('after', 'after_any', 'chain', 'fan_out', 'fan_in')),
    needed boolean NOT NULL GENERATED ALWAYS AS (kind <> 'after_any') STORED,
    outcome text CHECK (outcome IN ('completed', 'failed', 'dead', 'cancelled', 'abandoned')),
    seen boolean NOT NULL CHECK (outcome IS NOT NULL OR NOT seen),
    UNIQUE (parent_id, child_id)
) WITH (
    autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_insert_threshold = 10000,
    autovacuum_analyze_threshold = 10000
);

-- A join asks whether there is an edge with this outcome: one probe each, however many there are.
CREATE INDEX edges_into ON headrace.edges (child_id, needed, outcome);

CREATE INDEX edges_unseen ON headrace.edges (ord) WHERE outcome IS NOT NULL AND NOT seen;

-- The log. A sequence number is taken before its transaction commits, so numbers alone would let a reader
-- pass over a late commit. The order is (xid, seq), and a reader stops below the oldest transaction that
-- still runs: nothing can appear there any more.
-- Tenant, queue, type and priority are the lane's.
CREATE TABLE headrace.events (
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    seq bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL,
    run_at timestamptz NOT NULL,
    job_seq bigint NOT NULL,
    lane integer NOT NULL,
    version integer NOT NULL,
    attempt integer NOT NULL,
    failures integer NOT NULL,
    losses integer NOT NULL,
    payload_bytes integer,
    result_bytes integer,
    lease_until timestamptz,
    wait_us bigint,
    run_us bigint,
    job_id text NOT NULL,
    kind text NOT NULL,
    before text,
    after text NOT NULL,
    worker text,
    category text,
    code text,
    message text,
    detail bytea,
    PRIMARY KEY (xid, seq)
) WITH (
    autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_insert_threshold = 10000,
    autovacuum_analyze_threshold = 10000
);

-- One job's events. By the job's seq, not its id: neighbours in time are neighbours in the index, so
-- a batch of a hundred touches a page or two instead of a hundred.
CREATE INDEX events_of_job ON headrace.events (job_seq);

-- The seqs of deleted jobs, so that their events are still found by id.
CREATE TABLE headrace.deleted_jobs (
    id text NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (id, seq)
);

-- How many jobs there are by lane and state, as far as the events of transactions before `tally_place` tell.
-- Counting adds what is told from there on, so that it need not read the jobs. A lane's own numbers may be
-- negative, since a job may change lanes: those of a tenant and queue together are right.
CREATE TABLE headrace.tallies (
    lane integer NOT NULL,
    state text NOT NULL,
    jobs bigint NOT NULL,
    PRIMARY KEY (lane, state)
);

-- No row: nothing has been tallied.
CREATE TABLE headrace.tally_place (
    xid xid8 NOT NULL
);

CREATE UNIQUE INDEX tally_place_only ON headrace.tally_place ((TRUE));

-- Deleting a job writes no event: these are the jobs that were deleted since then.
CREATE TABLE headrace.untallied (
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    lane integer NOT NULL,
    state text NOT NULL,
    jobs bigint NOT NULL
);

-- The failures of jobs are counted from these: few, and of no other use.
CREATE INDEX jobs_failing ON headrace.jobs (lane, state) INCLUDE (failures) WHERE failures > 0;

-- Pauses of queues.
CREATE TABLE headrace.pauses (
    queue text NOT NULL,
    tenant text, -- NULL: for every tenant
    since timestamptz NOT NULL,
    UNIQUE NULLS NOT DISTINCT (queue, tenant)
);

-- The workers that asked for jobs. Filters: NULL does not filter. How many handlers it runs at once, and how many it
-- ran then; NULL: it did not say.
CREATE TABLE headrace.workers (
    worker text PRIMARY KEY,
    seen_at timestamptz NOT NULL,
    tenant text,
    queues text[],
    types text[],
    tags text[] NOT NULL,
    slots integer,
    busy integer,
    process jsonb -- host, pid, version, started_at, draining; NULL: it did not say
) WITH (fillfactor = 50);

-- Where the log begins: the place of the last event that was trimmed, in one row, or none as long as nothing was.
-- Nothing can appear before it any more, so readers start behind it: what is dead in the index before it
-- costs them nothing.
CREATE TABLE headrace.log_start (
    xid xid8 NOT NULL,
    seq bigint NOT NULL
);

CREATE UNIQUE INDEX log_start_only ON headrace.log_start ((TRUE));

-- Which records there are: a row here for as long as there is one, whatever becomes of its body. Claims look
-- here for gates.
CREATE TABLE headrace.records (
    kind text NOT NULL,
    name text NOT NULL,
    PRIMARY KEY (kind, name)
);

-- Their present versions, one row each. A new version is a new row: a gate may change with every claim, and
-- while a forgotten transaction keeps all the old ones, the present one is still the last in the index.
CREATE TABLE headrace.record_versions (
    kind text NOT NULL,
    name text NOT NULL,
    version bigint NOT NULL CHECK (version >= 1),
    body bytea NOT NULL,
    PRIMARY KEY (kind, name, version)
);

-- A job as a claim answers with it: a row of job_rows, without what the claimer knows, and what the claim learned.
CREATE TYPE headrace.claimed_job AS (
    seq bigint,
    id text,
    lane integer,
    version integer,
    run_at timestamptz,
    updated_at timestamptz,
    attempt integer,
    failures integer,
    losses integer,
    lease_until timestamptz,
    scheduled_at timestamptz,
    started_at timestamptz,
    last_failed_at timestamptz,
    failure_message text,
    failure_category text,
    failure_code text,
    tags text[],
    created_at timestamptz,
    key text,
    previous_id text,
    parent_id text,
    correlation_id text,
    callback_url text,
    depth integer,
    max_attempts integer,
    lease_seconds double precision,
    timeout_seconds double precision,
    expires_at timestamptz,
    backoff bytea,
    payload bytea,
    result bytea,
    progress double precision,
    progress_note text,
    checkpoint bytea,
    log bytea,
    early boolean,
    excess bigint -- index entries that were read and led to no waiting job, at least
);

-- A job as the store reads it: one row.
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
    jobs.checkpoint,
    jobs.log
FROM headrace.jobs
INNER JOIN headrace.bodies ON bodies.seq = jobs.seq;

-- The log with its words spelled out and its cursor, for readers that are not Headrace. It ends where
-- reading is safe: below the oldest transaction that still runs. The seq of the job is there so that the events of
-- whole jobs can be read in ranges.
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
