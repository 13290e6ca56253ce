UPDATE headrace.schema_version SET functions = $1, functions_by = $2, works_with = $3
