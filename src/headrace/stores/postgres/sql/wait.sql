-- name: notify
-- A hint only: it need not survive a crash, so its commit does not wait for the disk.
SELECT
    set_config('synchronous_commit', 'off', TRUE),
    pg_notify($1::text, $2::text)
