SELECT headrace.delete_jobs($1::text[], $2::integer[])
