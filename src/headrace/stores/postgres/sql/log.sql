-- name: events
SELECT *
FROM headrace.read_events(
    $1::text::xid8, $2::bigint, $3::text, $4::integer, $5::text
)

-- name: has_grown
SELECT headrace.log_has_grown($1::text::xid8, $2::bigint)

-- name: tail
SELECT * FROM {calls.log_tail}

-- name: trim
SELECT headrace.trim_log($1::text::xid8, $2::bigint, $3::timestamptz, $4::integer)
