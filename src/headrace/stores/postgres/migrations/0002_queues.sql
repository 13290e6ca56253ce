-- Pauses of queues, and the workers that asked for jobs.

CREATE TABLE headrace.pauses (
    queue text NOT NULL,
    tenant text, -- NULL: for every tenant
    since timestamptz NOT NULL,
    UNIQUE NULLS NOT DISTINCT (queue, tenant)
);

-- The filters; NULL: it does not filter.
CREATE TABLE headrace.workers (
    worker text PRIMARY KEY,
    seen_at timestamptz NOT NULL,
    tenant text,
    queues text[],
    types text[],
    tags text[] NOT NULL
) WITH (fillfactor = 50);
