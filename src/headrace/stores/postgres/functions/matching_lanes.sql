-- The lanes from one id on and below another that a request may take from. Merged into the query around it.
CREATE OR REPLACE FUNCTION headrace.matching_lanes(
    first_lane integer,
    end_lane integer,
    the_tenant text, -- NULL: any
    the_queues text[], -- NULL: any
    the_types text[], -- NULL: any
    past_gates boolean -- queues with a gate, too
) RETURNS TABLE (id integer, priority smallint)
LANGUAGE sql
STABLE
AS $$
SELECT
    lanes.id,
    lanes.priority
FROM headrace.lanes
WHERE
    lanes.id >= first_lane
    AND lanes.id < end_lane
    AND (the_tenant IS NULL OR lanes.tenant = the_tenant)
    AND (the_queues IS NULL OR lanes.queue = ANY (the_queues))
    AND (the_types IS NULL OR lanes.type = ANY (the_types))
    AND NOT EXISTS (
        SELECT FROM headrace.pauses
        WHERE
            pauses.queue = lanes.queue
            AND (pauses.tenant IS NULL OR pauses.tenant = lanes.tenant)
    )
    AND (
        past_gates
        OR NOT EXISTS (
            SELECT FROM headrace.records
            WHERE records.kind = 'gate' AND records.name = lanes.queue
        )
    )
$$;
