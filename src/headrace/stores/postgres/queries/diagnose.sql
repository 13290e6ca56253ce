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
    -- Numbers of transactions that this server has not reached: the database came from another one.
    EXISTS (SELECT FROM headrace.events WHERE xid >= pg_snapshot_xmax(pg_current_snapshot())),
    (SELECT count(*) FROM headrace.lanes),
    (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend'),
    current_setting('max_connections')::integer
