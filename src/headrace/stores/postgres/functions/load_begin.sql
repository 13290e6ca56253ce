-- The two tables that a bulk load is filled into, for as long as the transaction lasts: the rows, and what whole
-- groups of them have in common. Dropped with it, so that nothing is left on a connection that a pooler lends on.
CREATE OR REPLACE FUNCTION headrace.load_begin() RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    CREATE TEMPORARY TABLE load_rows (
        seq bigint NOT NULL DEFAULT nextval('headrace.job_seqs'), -- so jobs keep the order of the rows
        group_number integer NOT NULL,
        id text NOT NULL,
        key text,
        run_at timestamptz, -- NULL: at once
        key_json bytea, -- the key as it stands in the event's detail
        payload bytea NOT NULL
    ) ON COMMIT DROP;
    CREATE TEMPORARY TABLE load_groups (
        group_number integer NOT NULL,
        lane integer NOT NULL,
        tags text[] NOT NULL,
        created_at timestamptz NOT NULL,
        max_attempts integer,
        lease_seconds double precision,
        lease_us bigint,
        timeout_seconds double precision,
        expires_at timestamptz,
        detail bytea NOT NULL, -- of the events of rows without a key
        keyed_head bytea NOT NULL, -- of rows with one: what comes before it, and after
        keyed_tail bytea NOT NULL,
        key_expires_at timestamptz,
        key_released boolean NOT NULL
    ) ON COMMIT DROP;
END;
$$;
