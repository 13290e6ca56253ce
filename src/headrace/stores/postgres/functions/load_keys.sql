-- Hold the keys of the rows to be loaded, in order, so that two loads never wait for each other. Rows that did not
-- get theirs, because a job holds it, are left out of the load.
CREATE OR REPLACE FUNCTION headrace.load_keys(the_time timestamptz) RETURNS void
LANGUAGE sql
SET enable_nestloop = off
SET enable_mergejoin = off
AS $$
WITH got AS (
    INSERT INTO headrace.keys AS held (
        tenant, queue, type, key, job_id, expires_at, released_when_terminal
    )
    SELECT
        lanes.tenant,
        lanes.queue,
        lanes.type,
        load_rows.key,
        load_rows.id,
        load_groups.key_expires_at,
        load_groups.key_released
    FROM pg_temp.load_rows
    INNER JOIN pg_temp.load_groups ON load_groups.group_number = load_rows.group_number
    INNER JOIN headrace.lanes ON lanes.id = load_groups.lane
    WHERE load_rows.key IS NOT NULL
    ORDER BY lanes.tenant, lanes.queue, lanes.type, load_rows.key
    ON CONFLICT (tenant, queue, type, key) DO UPDATE SET
        job_id = excluded.job_id,
        expires_at = excluded.expires_at,
        released_when_terminal = excluded.released_when_terminal
    WHERE held.expires_at <= the_time
    RETURNING job_id
)
DELETE FROM pg_temp.load_rows
WHERE
    load_rows.key IS NOT NULL
    AND NOT EXISTS (SELECT FROM got WHERE got.job_id = load_rows.id)
$$;
