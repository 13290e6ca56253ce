SELECT headrace.load_staged($1::text, $2::integer[], $3::bigint[], $4::integer[])
