UPDATE headrace.schema_version SET version = $1::integer
