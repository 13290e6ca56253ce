UPDATE headrace.schema_version SET version = version + 1
