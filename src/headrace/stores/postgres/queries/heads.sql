SELECT *
FROM headrace.lane_heads(
    $1::timestamptz, $2::integer, $3::text, $4::text[], $5::text[], $6::text[], $7::integer[],
    $8::integer[], $9::timestamptz[], $10::bigint[], $11::timestamptz[], $12::bigint[]
)
