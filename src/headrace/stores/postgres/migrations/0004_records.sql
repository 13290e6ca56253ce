-- Lanes by limit key, what handlers logged, and records.

-- A lane is all jobs of one tenant, queue, type, priority and limit key. There may be many thousands of them,
-- most of them empty: see open_lanes.
ALTER TABLE headrace.lanes ADD COLUMN limit_key text;
ALTER TABLE headrace.lanes DROP CONSTRAINT lanes_tenant_queue_type_priority_key;
ALTER TABLE headrace.lanes ADD CONSTRAINT lanes_identity
UNIQUE NULLS NOT DISTINCT (tenant, queue, type, priority, limit_key);

-- The last lines that handlers have logged.
ALTER TABLE headrace.jobs ADD COLUMN log bytea;

CREATE OR REPLACE VIEW headrace.job_rows AS
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

-- A job as a claim answers with it: a row of job_rows, and what the claim learned of its lane.
CREATE TYPE headrace.claimed_job AS (
    seq bigint,
    id text,
    lane integer,
    state text,
    version integer,
    run_at timestamptz,
    updated_at timestamptz,
    attempt integer,
    failures integer,
    losses integer,
    token text,
    lease_until timestamptz,
    assignee text,
    assigned_at timestamptz,
    scheduled_at timestamptz,
    started_at timestamptz,
    last_failed_at timestamptz,
    finalized_at timestamptz,
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
    first_run_at timestamptz, -- of the first waiting job of the lane that is as early: a possible mark
    first_seq bigint,
    excess bigint -- index entries that were read and led to no waiting job, at least
);

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
