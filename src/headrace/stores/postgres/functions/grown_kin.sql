-- Around which of these jobs the graph is not as an insertion took it to be: one element per job, NULL for what
-- does not matter.
CREATE OR REPLACE FUNCTION headrace.grown_kin(
    the_ids text[],
    versions integer[],
    parents_maxima integer[],
    join_lists text[], -- array literals
    spawned_lists text[] -- array literals
) RETURNS SETOF text
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
-- By index, whatever the statistics say: they may be from a time when the tables were empty.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT wanted.id
    FROM
        unnest(the_ids, versions, parents_maxima, join_lists, spawned_lists)
        AS wanted (id, version, parents_max, joins, spawned)
    WHERE
        (
            wanted.version IS NOT NULL
            -- As a value, not by EXISTS: that may become a hash of all jobs there are.
            AND wanted.version IS DISTINCT FROM (
                SELECT jobs.version FROM headrace.bodies
                INNER JOIN headrace.jobs ON jobs.seq = bodies.seq
                WHERE bodies.id = wanted.id
            )
        )
        OR (
            wanted.parents_max IS NOT NULL
            AND (SELECT count(*) FROM headrace.edges WHERE edges.child_id = wanted.id)
            > wanted.parents_max
        )
        OR (
            wanted.joins IS NOT NULL
            AND EXISTS (
                SELECT FROM headrace.edges
                WHERE
                    edges.parent_id = wanted.id
                    AND edges.kind = 'fan_in'
                    AND edges.child_id <> ALL (wanted.joins::text[])
            )
        )
        OR (
            wanted.spawned IS NOT NULL
            AND EXISTS (
                SELECT FROM headrace.bodies
                WHERE bodies.parent_id = wanted.id AND bodies.id <> ALL (wanted.spawned::text[])
            )
        );
END;
$$;
