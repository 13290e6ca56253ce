-- One element stands for the same value in every row, so that it need not be sent a thousand times.
-- (An empty array stands for NULL in every row: unnest does that by itself.)
CREATE OR REPLACE FUNCTION headrace.spread(column_values anyarray, row_count integer) RETURNS anyarray
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
AS $$
SELECT CASE
    WHEN row_count > 1 AND cardinality(column_values) = 1
        THEN array_fill(column_values[1], ARRAY[row_count])
    ELSE column_values
END
$$;
