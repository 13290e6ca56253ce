SELECT * FROM headrace.lapsed_jobs($1::timestamptz, $2::integer[], $3::integer)
