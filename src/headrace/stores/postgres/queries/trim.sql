SELECT headrace.trim_log($1::text::xid8, $2::bigint, $3::timestamptz, $4::integer)
