SELECT
    parent_id,
    child_id,
    kind,
    outcome,
    seen
FROM headrace.edges
WHERE child_id = $1::text
ORDER BY ord
