-- The edges from a parent (into one child, if it is given), in the order they were stored.
SELECT ord, parent_id, child_id, kind, outcome, seen
FROM edges
WHERE parent_id = :parent_id AND (:child_id IS NULL OR child_id = :child_id)
ORDER BY ord;
