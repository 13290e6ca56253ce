SELECT id
FROM headrace.lanes
WHERE
    ($1::text IS NULL OR tenant = $1)
    AND ($2::text[] IS NULL OR queue = ANY ($2))
    AND ($3::text[] IS NULL OR type = ANY ($3))
