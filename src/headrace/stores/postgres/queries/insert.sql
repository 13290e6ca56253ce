SELECT headrace.insert_jobs(
    $1::timestamptz, $2::boolean, $3::text, $4::text, $5::text[], $6::text[], $7::text[],
    $8::integer[], $9::integer[], $10::text[], $11::text[], $12::text[], $13::integer[],
    $14::text[], $15::timestamptz[], $16::text[], $17::text[], $18::text[], $19::text[],
    $20::text[], $21::integer[], $22::integer[], $23::double precision[], $24::bigint[],
    $25::double precision[], $26::timestamptz[], $27::bytea[], $28::bytea[], $29::text[],
    $30::integer[], $31::timestamptz[], $32::timestamptz[], $33::integer[], $34::integer[],
    $35::integer[], $36::text[], $37::timestamptz[], $38::text[], $39::timestamptz[],
    $40::timestamptz[], $41::timestamptz[], $42::timestamptz[], $43::timestamptz[], $44::text[],
    $45::text[], $46::text[], $47::bytea[], $48::double precision[], $49::text[], $50::bytea[],
    $51::bytea[], $52::timestamptz[], $53::text[], $54::integer[], $55::bytea[], $56::integer[],
    $57::text[], $58::text[], $59::text[], $60::text[], $61::text[], $62::boolean[], $63::text[],
    $64::text[], $65::text[], $66::text[], $67::text[], $68::timestamptz[], $69::boolean[]
)
