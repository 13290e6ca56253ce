SELECT * FROM headrace.outlived_jobs($1::timestamptz, $2::text, $3::integer)
