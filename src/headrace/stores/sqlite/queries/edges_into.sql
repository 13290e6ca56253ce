-- The edges into a child, in the order they were stored.
SELECT ord, parent_id, child_id, kind, outcome, seen
FROM edges
WHERE child_id = ?
ORDER BY ord;
