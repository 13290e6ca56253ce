-- As waiting_line, but only jobs that have all of these tags, of which `the_tag` leads.
CREATE OR REPLACE FUNCTION headrace.tagged_line(
    the_tag text,
    the_tags text[],
    the_lane integer,
    the_time timestamptz,
    the_reach integer,
    mark_run_at timestamptz, -- NULL: the beginning
    mark_seq bigint,
    early_run_at timestamptz,
    early_seq bigint
) RETURNS TABLE (
    run_at timestamptz,
    seq bigint,
    early boolean,
    first_run_at timestamptz,
    first_seq bigint
)
LANGUAGE sql
STABLE
AS $$
SELECT
    head.run_at,
    head.seq,
    TRUE,
    first_value(head.run_at) OVER (ORDER BY head.run_at, head.seq),
    first_value(head.seq) OVER (ORDER BY head.run_at, head.seq)
FROM (
    SELECT
        ready_tags.run_at,
        ready_tags.seq
    FROM headrace.ready_tags
    WHERE
        ready_tags.tag = the_tag
        AND ready_tags.lane = the_lane
        AND ready_tags.early
        AND (ready_tags.run_at, ready_tags.seq)
        >= (coalesce(early_run_at, '-infinity'), coalesce(early_seq, 0))
        AND ready_tags.run_at <= the_time
        AND (
            cardinality(the_tags) = 1
            OR (
                SELECT bodies.tags @> the_tags
                FROM headrace.bodies
                WHERE bodies.seq = ready_tags.seq
            )
        )
    ORDER BY ready_tags.run_at, ready_tags.seq
    LIMIT the_reach
) AS head
UNION ALL
SELECT
    head.run_at,
    head.seq,
    FALSE,
    first_value(head.run_at) OVER (ORDER BY head.run_at, head.seq),
    first_value(head.seq) OVER (ORDER BY head.run_at, head.seq)
FROM (
    SELECT
        ready_tags.run_at,
        ready_tags.seq
    FROM headrace.ready_tags
    WHERE
        ready_tags.tag = the_tag
        AND ready_tags.lane = the_lane
        AND NOT ready_tags.early
        AND (ready_tags.run_at, ready_tags.seq)
        >= (coalesce(mark_run_at, '-infinity'), coalesce(mark_seq, 0))
        AND ready_tags.run_at <= the_time
        AND (
            cardinality(the_tags) = 1
            OR (
                SELECT bodies.tags @> the_tags
                FROM headrace.bodies
                WHERE bodies.seq = ready_tags.seq
            )
        )
    ORDER BY ready_tags.run_at, ready_tags.seq
    LIMIT the_reach
) AS head
$$;
