-- What is kept beside the version: not there in a schema from before it was.
ALTER TABLE headrace.schema_version
ADD COLUMN IF NOT EXISTS functions text,
ADD COLUMN IF NOT EXISTS functions_by text,
ADD COLUMN IF NOT EXISTS works_with integer
