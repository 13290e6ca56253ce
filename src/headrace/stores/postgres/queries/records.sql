SELECT * FROM headrace.read_records($1::text, $2::text[])
