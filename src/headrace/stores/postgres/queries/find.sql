SELECT *
FROM headrace.find_jobs(
    $1::text[], $2::integer[], $3::text[], $4::text[], $5::text, $6::timestamptz, $7::timestamptz,
    $8::timestamptz, $9::boolean, $10::bigint, $11::integer
)
