SELECT
    relname,
    n_live_tup,
    n_dead_tup,
    -- Autovacuum analyzes where it has come by: what was modified since, it has not seen yet.
    current_setting('autovacuum')::boolean AND n_mod_since_analyze >= n_dead_tup AS is_unseen
FROM pg_catalog.pg_stat_user_tables
WHERE schemaname = $1::text AND relname = ANY ($2::text[])
ORDER BY relname
