SELECT headrace.load_stage($1::text, $2::text::timestamptz)
