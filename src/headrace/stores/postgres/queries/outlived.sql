SELECT * FROM headrace.outlived_jobs($1::timestamptz, $2::integer[], $3::integer)
