SELECT *
FROM headrace.held_keys($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz)
