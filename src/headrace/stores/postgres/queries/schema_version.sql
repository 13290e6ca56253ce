SELECT version FROM headrace.schema_version
