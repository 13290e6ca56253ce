SELECT *
FROM headrace.extend_leases($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz)
