SELECT *
FROM headrace.commit_changes(
    $1::boolean, $2::boolean, $3::bigint[], $4::text[], $5::integer[], $6::timestamptz[],
    $7::text[], $8::text[], $9::integer[], $10::timestamptz[], $11::timestamptz[],
    $12::integer[], $13::integer[], $14::integer[], $15::text[], $16::timestamptz[],
    $17::text[], $18::timestamptz[], $19::timestamptz[], $20::timestamptz[],
    $21::timestamptz[], $22::timestamptz[], $23::text[], $24::text[], $25::text[],
    $26::bytea[], $27::text[], $28::text[], $29::text[], $30::text[], $31::bigint[],
    $32::bigint[], $33::integer[], $34::text[], $35::text[], $36::text[], $37::text[],
    $38::text[], $39::bigint[], $40::text[], $41::integer[], $42::timestamptz[], $43::text[],
    $44::text[]
)
