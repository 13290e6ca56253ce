SELECT
    parent_id,
    child_id,
    kind,
    outcome,
    seen
FROM headrace.edges
WHERE outcome IS NOT NULL AND NOT seen
ORDER BY ord
LIMIT $1::integer
