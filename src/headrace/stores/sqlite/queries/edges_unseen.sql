-- Outcomes that no child has been judged by: what a crash left behind.
SELECT ord, parent_id, child_id, kind, outcome, seen
FROM edges
WHERE outcome IS NOT NULL AND seen = 0
ORDER BY ord
LIMIT ?;
