SELECT
    id,
    seq
FROM headrace.bodies
WHERE id = ANY ($1::text[])
