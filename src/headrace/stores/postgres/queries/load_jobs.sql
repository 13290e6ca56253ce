SELECT
    created,
    repeated
FROM headrace.load_jobs($1::text::timestamptz, $2::boolean)
