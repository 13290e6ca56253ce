SELECT *
FROM headrace.claim_shares(
    $1::text, $2::timestamptz, $3::integer, $4::integer, $5::text, $6::text, $7::text[],
    $8::text[], $9::text[], $10::boolean, $11::timestamptz, $12::text[], $13::text[],
    $14::bigint[], $15::bytea[], $16::integer[], $17::integer[], $18::timestamptz[],
    $19::bigint[], $20::timestamptz[], $21::bigint[], $22::timestamptz
)
