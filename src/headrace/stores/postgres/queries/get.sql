SELECT * FROM headrace.get_jobs($1::text[])
