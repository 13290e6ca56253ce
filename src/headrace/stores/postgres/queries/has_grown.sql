SELECT headrace.log_has_grown($1::text::xid8, $2::bigint)
