-- Pauses of queues, and the workers that asked for jobs.

CREATE TABLE pauses (
    queue TEXT NOT NULL,
    tenant TEXT, -- NULL: for every tenant
    since INTEGER NOT NULL
) STRICT;

-- Two indexes, since NULL never equals NULL in a unique index.
CREATE UNIQUE INDEX pauses_of_tenant ON pauses (queue, tenant) WHERE tenant IS NOT NULL;
CREATE UNIQUE INDEX pauses_of_all ON pauses (queue) WHERE tenant IS NULL;

-- The filters are JSON lists; NULL: it does not filter.
CREATE TABLE workers (
    worker TEXT PRIMARY KEY,
    seen_at INTEGER NOT NULL,
    tenant TEXT,
    queues TEXT,
    types TEXT,
    tags TEXT NOT NULL
) STRICT, WITHOUT ROWID;
