SELECT headrace.insert_jobs(
    $1::timestamptz, $2::boolean, $3::text, $4::text, $5::text[], $6::text[], $7::text[],
    $8::integer[], $9::text[], $10::timestamptz[], $11::text[], $12::text[], $13::text[],
    $14::text[], $15::text[], $16::integer[], $17::integer[], $18::double precision[],
    $19::bigint[], $20::double precision[], $21::timestamptz[], $22::bytea[], $23::bytea[],
    $24::text[], $25::integer[], $26::timestamptz[], $27::timestamptz[], $28::integer[],
    $29::integer[], $30::integer[], $31::text[], $32::timestamptz[], $33::text[],
    $34::timestamptz[], $35::timestamptz[], $36::timestamptz[], $37::timestamptz[],
    $38::timestamptz[], $39::text[], $40::text[], $41::text[], $42::bytea[],
    $43::double precision[], $44::text[], $45::bytea[], $46::bytea[], $47::timestamptz[], $48::text[],
    $49::integer[], $50::bytea[], $51::integer[], $52::text[], $53::text[], $54::text[],
    $55::text[], $56::text[], $57::boolean[], $58::text[], $59::text[], $60::text[],
    $61::text[], $62::text[], $63::timestamptz[], $64::boolean[]
)
