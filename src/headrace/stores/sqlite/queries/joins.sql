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
FROM json_each(?) AS wanted;
