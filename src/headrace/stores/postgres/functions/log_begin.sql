-- The place of the last event that was trimmed; no row as long as nothing was. For readers of the view event_log,
-- who must know that what they look for is gone.
CREATE OR REPLACE FUNCTION headrace.log_begin()
RETURNS TABLE (last_xid text, last_seq bigint)
LANGUAGE sql
STABLE
AS $$
    SELECT log_start.xid::text, log_start.seq FROM headrace.log_start;
$$;
