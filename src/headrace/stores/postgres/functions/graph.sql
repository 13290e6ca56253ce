-- name: joins_into
-- The facts of graph.Join: one index probe each (LIMIT, not EXISTS, which the planner may turn into a
-- scan of all edges), however many parents a child has. Of several broken
-- parents the first in the order of graph.PROPAGATED is named.
CREATE OR REPLACE FUNCTION headrace.joins_into(the_ids text[]) RETURNS TABLE (
    child_id text,
    needs_open boolean,
    needs_broken text,
    any_open boolean,
    any_ended boolean
)
LANGUAGE plpgsql
STABLE
{by_index}
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT
        child.id,
        coalesce((
            SELECT TRUE FROM headrace.edges
            WHERE edges.child_id = child.id AND edges.needed AND edges.outcome IS NULL
            LIMIT 1
        ), FALSE),
        CASE
            WHEN coalesce((
                SELECT TRUE FROM headrace.edges
                WHERE edges.child_id = child.id AND edges.needed AND edges.outcome = 'failed'
                LIMIT 1
            ), FALSE) THEN 'failed'
            WHEN coalesce((
                SELECT TRUE FROM headrace.edges
                WHERE edges.child_id = child.id AND edges.needed AND edges.outcome = 'dead'
                LIMIT 1
            ), FALSE) THEN 'dead'
            WHEN coalesce((
                SELECT TRUE FROM headrace.edges
                WHERE edges.child_id = child.id AND edges.needed AND edges.outcome = 'cancelled'
                LIMIT 1
            ), FALSE) THEN 'cancelled'
            WHEN coalesce((
                SELECT TRUE FROM headrace.edges
                WHERE edges.child_id = child.id AND edges.needed AND edges.outcome = 'abandoned'
                LIMIT 1
            ), FALSE) THEN 'abandoned'
        END,
        coalesce((
            SELECT TRUE FROM headrace.edges
            WHERE edges.child_id = child.id AND NOT edges.needed AND edges.outcome IS NULL
            LIMIT 1
        ), FALSE),
        coalesce((
            SELECT TRUE FROM headrace.edges
            WHERE edges.child_id = child.id AND NOT edges.needed AND edges.outcome IS NOT NULL
            LIMIT 1
        ), FALSE)
    FROM unnest(the_ids) AS child (id);
END;
$$;

-- name: spawned_jobs
-- The jobs that a job has spawned, in order.
CREATE OR REPLACE FUNCTION headrace.spawned_jobs(the_parent text) RETURNS SETOF headrace.job_rows
LANGUAGE plpgsql
STABLE
{by_index}
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT job.* FROM headrace.job_rows AS job WHERE job.parent_id = the_parent ORDER BY job.seq;
END;
$$;
