-- The edges from jobs that end now, to be given their outcome. Nearly always there are none, so the
-- caller sorts.
SELECT edges.ord, edges.parent_id, edges.child_id, edges.kind, edges.outcome, edges.seen
FROM json_each(?) AS ended
CROSS JOIN edges ON edges.parent_id = ended.value
WHERE edges.outcome IS NULL;
