SELECT * FROM headrace.held_leases($1::timestamptz, $2::text[])
