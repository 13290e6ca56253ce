-- name: diagnose
SELECT
    current_setting('server_version'),
    current_setting('server_version_num')::integer,
    current_setting('fsync'),
    current_setting('synchronous_commit'),
    current_setting('full_page_writes'),
    (SELECT version FROM headrace.schema_version),
    (
        SELECT extract(EPOCH FROM max(clock_timestamp() - xact_start))::double precision
        FROM pg_catalog.pg_stat_activity
        WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'
    ),
    (
        SELECT extract(EPOCH FROM max(clock_timestamp() - xact_start))::double precision
        FROM pg_catalog.pg_stat_activity
        WHERE pid <> pg_backend_pid() AND backend_xid IS NOT NULL
    ),
    -- Of other roles' sessions the server shows neither kind nor times, unless it is told to. That a transaction is
    -- open is seen from the lock that each holds on itself.
    (
        SELECT count(*)
        FROM pg_catalog.pg_stat_activity AS other
        WHERE
            pid <> pg_backend_pid() AND backend_type IS NULL AND usename IS NOT NULL AND datname IS NOT NULL
            AND EXISTS (
                SELECT FROM pg_catalog.pg_locks
                WHERE pg_locks.pid = other.pid AND pg_locks.locktype = 'virtualxid'
            )
    ),
    (
        SELECT count(*)
        FROM pg_catalog.pg_stat_activity
        WHERE pid <> pg_backend_pid() AND backend_type IS NULL AND backend_xid IS NOT NULL
    ),
    current_user::text,
    -- Numbers of transactions that this server has not reached: the database came from another one.
    EXISTS (SELECT FROM headrace.events WHERE xid >= pg_snapshot_xmax(pg_current_snapshot())),
    (SELECT count(*) FROM headrace.lanes),
    (
        SELECT count(*)
        FROM pg_catalog.pg_stat_activity
        WHERE
            backend_type = 'client backend'
            OR (backend_type IS NULL AND usename IS NOT NULL AND datname IS NOT NULL)
    ),
    current_setting('max_connections')::integer

-- name: diagnose_tables
SELECT
    relname,
    n_live_tup,
    n_dead_tup,
    -- Autovacuum analyzes where it has come by: what was modified since, it has not seen yet.
    current_setting('autovacuum')::boolean AND n_mod_since_analyze >= n_dead_tup AS is_unseen
FROM pg_catalog.pg_stat_user_tables
WHERE schemaname = $1::text AND relname = ANY ($2::text[])
ORDER BY relname
