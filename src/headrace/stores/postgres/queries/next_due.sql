SELECT headrace.next_due(
    $1::timestamptz, $2::text, $3::text[], $4::text[], $5::integer[], $6::integer[],
    $7::timestamptz[], $8::bigint[], $9::timestamptz[], $10::bigint[]
)
