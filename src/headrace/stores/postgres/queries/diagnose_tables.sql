SELECT
    relname,
    n_live_tup,
    n_dead_tup
FROM pg_catalog.pg_stat_user_tables
WHERE schemaname = $1::text AND relname = ANY ($2::text[])
ORDER BY relname
