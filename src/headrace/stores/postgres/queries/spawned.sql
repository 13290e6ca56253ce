SELECT * FROM headrace.spawned_jobs($1::text)
