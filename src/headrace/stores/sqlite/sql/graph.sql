-- fragment: edge
edges.ord, edges.parent_id, edges.child_id, edges.kind, edges.outcome, edges.seen

-- name: edge_add
-- Dependencies. A pair of jobs has one edge; the last word on its kind stands.
INSERT INTO edges (parent_id, child_id, kind, outcome, seen) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (parent_id, child_id) DO UPDATE
SET kind = excluded.kind, outcome = excluded.outcome, seen = excluded.seen

-- name: edges_open
-- The edges from jobs that end now, to be given their outcome. Nearly always there are none, so the
-- caller sorts.
SELECT {edge}
FROM json_each(?) AS ended
CROSS JOIN edges ON edges.parent_id = ended.value
WHERE edges.outcome IS NULL

-- name: edge_settle
-- Parents have ended.
UPDATE edges
SET outcome = ended.column1
FROM (
    VALUES (?, ?)
) AS ended
WHERE edges.ord = ended.column2

-- name: edge_see
-- Children have been judged by these outcomes. Spelled out, since SQLite would read the whole table
-- for a list of rows.
UPDATE edges
SET seen = 1
WHERE
    outcome IS NOT NULL
    AND (
        (parent_id = ? AND child_id = ?)
    )

-- name: edges_remove
-- Jobs are deleted: the edges into them go with them. Those from them stay, with their outcome.
DELETE FROM edges WHERE child_id IN (SELECT value FROM json_each(?))

-- name: edges_from
-- The edges from a parent (into one child, if it is given), in the order they were stored.
SELECT {edge}
FROM edges
WHERE parent_id = :parent_id AND (:child_id IS NULL OR child_id = :child_id)
ORDER BY ord

-- name: edges_into
-- The edges into a child, in the order they were stored.
SELECT {edge}
FROM edges
WHERE child_id = ?
ORDER BY ord

-- name: edges_unseen
-- Outcomes that no child has been judged by: what a crash left behind.
SELECT {edge}
FROM edges
WHERE outcome IS NOT NULL AND seen = 0
ORDER BY ord
LIMIT ?

-- name: joins
-- How far the parents of each child are: a few existence probes each, however many parents it has.
-- The broken outcomes stand in the order of precedence of `graph.PROPAGATED`.
SELECT
    wanted.value,
    EXISTS (
        SELECT 1 FROM edges
        WHERE child_id = wanted.value AND needed = 1 AND outcome IS NULL
    ),
    CASE
        WHEN EXISTS (
            SELECT 1 FROM edges
            WHERE child_id = wanted.value AND needed = 1 AND outcome = 'failed'
        ) THEN 'failed'
        WHEN EXISTS (
            SELECT 1 FROM edges
            WHERE child_id = wanted.value AND needed = 1 AND outcome = 'dead'
        ) THEN 'dead'
        WHEN EXISTS (
            SELECT 1 FROM edges
            WHERE child_id = wanted.value AND needed = 1 AND outcome = 'cancelled'
        ) THEN 'cancelled'
        WHEN EXISTS (
            SELECT 1 FROM edges
            WHERE child_id = wanted.value AND needed = 1 AND outcome = 'abandoned'
        ) THEN 'abandoned'
    END,
    EXISTS (
        SELECT 1 FROM edges
        WHERE child_id = wanted.value AND needed = 0 AND outcome IS NULL
    ),
    EXISTS (
        SELECT 1 FROM edges
        WHERE child_id = wanted.value AND needed = 0 AND outcome IS NOT NULL
    )
FROM json_each(?) AS wanted

-- name: spawned
-- The jobs that one job has spawned, as a JSON list of their seqs.
SELECT json_group_array(seq) FROM jobs WHERE parent_id = :parent_id
