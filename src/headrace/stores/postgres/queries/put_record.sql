SELECT headrace.put_records(ARRAY[$1::text], ARRAY[$2::text], ARRAY[$3::bigint], ARRAY[$4::bytea])
