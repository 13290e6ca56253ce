SELECT * FROM headrace.count_jobs($1::timestamptz, $2::integer[], $3::text[])
