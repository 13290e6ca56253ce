SELECT *
FROM headrace.commit_changes(
    $1::boolean, $2::boolean, $3::bigint[], $4::text[], $5::integer[], $6::integer[],
    $7::text[], $8::text[], $9::text[], $10::integer[], $11::integer[], $12::integer[],
    $13::timestamptz[], $14::text[], $15::integer[], $16::timestamptz[], $17::timestamptz[],
    $18::integer[], $19::integer[], $20::integer[], $21::text[], $22::timestamptz[],
    $23::text[], $24::timestamptz[], $25::timestamptz[], $26::timestamptz[],
    $27::timestamptz[], $28::timestamptz[], $29::text[], $30::text[], $31::text[],
    $32::bytea[], $33::text[], $34::text[], $35::text[], $36::text[], $37::bigint[],
    $38::bigint[], $39::integer[], $40::text[], $41::text[], $42::text[], $43::text[],
    $44::text[], $45::bigint[], $46::text[], $47::integer[], $48::timestamptz[], $49::text[],
    $50::text[]
)
