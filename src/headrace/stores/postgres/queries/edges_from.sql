SELECT
    parent_id,
    child_id,
    kind,
    outcome,
    seen
FROM headrace.edges
WHERE parent_id = $1::text AND ($2::text IS NULL OR child_id = $2)
ORDER BY ord
