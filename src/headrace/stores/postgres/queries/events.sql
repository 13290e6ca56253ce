SELECT *
FROM headrace.read_events(
    $1::text::xid8, $2::bigint, $3::text, $4::integer, $5::text
)
