-- Whether a lease goes on: what lifecycle.lease_holds says. It ends with the job's lifetime and with the
-- attempt's execution timeout at the latest.
CREATE OR REPLACE FUNCTION headrace.lease_holds(
    the_time timestamptz,
    lease_until timestamptz,
    expires_at timestamptz,
    assigned_at timestamptz,
    timeout_seconds double precision
) RETURNS boolean
LANGUAGE sql
STABLE
AS $$
SELECT
    coalesce(lease_until > the_time, TRUE)
    AND coalesce(expires_at > the_time, TRUE)
    AND coalesce(assigned_at + make_interval(secs => timeout_seconds) >= the_time, TRUE);
$$;
