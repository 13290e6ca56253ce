SELECT headrace.grown_kin($1::text[], $2::integer[], $3::integer[], $4::text[], $5::text[])
