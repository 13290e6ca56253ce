-- waiting_line without a tag, tagged_line with one. Merged into the query around it.
CREATE OR REPLACE FUNCTION headrace.due_line(
    the_tag text, -- NULL: any job
    the_tags text[],
    the_lane integer,
    the_time timestamptz,
    the_reach integer,
    mark_run_at timestamptz,
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
SELECT line.*
FROM headrace.waiting_line(
    the_lane, the_time, the_reach, mark_run_at, mark_seq, early_run_at, early_seq
) AS line
WHERE the_tag IS NULL
UNION ALL
SELECT line.*
FROM headrace.tagged_line(
    the_tag, the_tags, the_lane, the_time, the_reach, mark_run_at, mark_seq, early_run_at, early_seq
) AS line
WHERE the_tag IS NOT NULL
$$;
