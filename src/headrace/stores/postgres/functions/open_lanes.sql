-- The lanes that a request may take from and that have waiting jobs, due or not, and where to start reading.
-- Merged into the query around it.
--
-- Hops from lane to lane: to the next one with an entry in the index of waiting jobs, then on to the next
-- one at or behind it that matches. So neither lanes without waiting jobs nor lanes of others cost a probe.
-- A hop into a lane walks over all dead entries at its beginning. Lanes with marks (see pick_jobs) are there
-- because of such entries: they count as open, and the hops go only through the gaps between them.
CREATE OR REPLACE FUNCTION headrace.open_lanes(
    the_tag text, -- NULL: any job; otherwise only jobs that have it count as waiting
    the_tenant text,
    the_queues text[],
    the_types text[],
    past_gates boolean,
    mark_lanes integer[], -- in order; the first is 0, before all lanes
    gap_ends integer[], -- the next of them; behind all lanes
    mark_run_ats timestamptz[],
    mark_seqs bigint[],
    early_run_ats timestamptz[],
    early_seqs bigint[]
) RETURNS TABLE (
    id integer,
    priority smallint,
    mark_run_at timestamptz,
    mark_seq bigint,
    early_run_at timestamptz,
    early_seq bigint
)
LANGUAGE sql
STABLE
AS $$
WITH RECURSIVE walk AS (
    SELECT
        start.lane,
        start.gap_end,
        marked.priority,
        start.mark_run_at,
        start.mark_seq,
        start.early_run_at,
        start.early_seq
    FROM unnest(mark_lanes, gap_ends, mark_run_ats, mark_seqs, early_run_ats, early_seqs)
    AS start (lane, gap_end, mark_run_at, mark_seq, early_run_at, early_seq)
    LEFT JOIN LATERAL headrace.matching_lanes(
        start.lane, start.lane + 1, the_tenant, the_queues, the_types, past_gates
    ) AS marked ON start.lane > 0
    UNION ALL
    SELECT
        CASE WHEN matching.id = busy.lane THEN busy.lane ELSE matching.id - 1 END,
        walk.gap_end,
        CASE WHEN matching.id = busy.lane THEN matching.priority END,
        NULL,
        NULL,
        NULL,
        NULL
    FROM walk
    CROSS JOIN LATERAL (
        (
            SELECT jobs.lane
            FROM headrace.jobs
            WHERE
                the_tag IS NULL
                AND jobs.lane > walk.lane
                AND jobs.lane < walk.gap_end
                AND jobs.state IN ('pending', 'retrying', 'lost')
            ORDER BY jobs.lane
            LIMIT 1
        )
        UNION ALL
        (
            SELECT ready_tags.lane
            FROM headrace.ready_tags
            WHERE
                ready_tags.tag = the_tag
                AND ready_tags.lane > walk.lane
                AND ready_tags.lane < walk.gap_end
            ORDER BY ready_tags.lane
            LIMIT 1
        )
    ) AS busy
    CROSS JOIN LATERAL (
        SELECT *
        FROM headrace.matching_lanes(
            busy.lane, walk.gap_end, the_tenant, the_queues, the_types, past_gates
        ) AS lanes
        ORDER BY lanes.id
        LIMIT 1
    ) AS matching
)
SELECT
    walk.lane,
    walk.priority,
    walk.mark_run_at,
    walk.mark_seq,
    walk.early_run_at,
    walk.early_seq
FROM walk
WHERE walk.priority IS NOT NULL
$$;
