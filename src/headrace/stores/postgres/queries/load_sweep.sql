SELECT headrace.load_sweep($1::text, $2::text, $3::timestamptz)
