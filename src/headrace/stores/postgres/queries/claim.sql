SELECT *
FROM headrace.claim_jobs(
    $1::text, $2::timestamptz, $3::integer, $4::integer, $5::text, $6::text, $7::text[],
    $8::text[], $9::text[], $10::boolean, $11::timestamptz, $12::integer[], $13::integer[],
    $14::timestamptz[], $15::bigint[], $16::timestamptz[], $17::bigint[]
)
