-- Children have been judged by these outcomes. Spelled out, since SQLite would read the whole table
-- for a list of rows.
UPDATE edges
SET seen = 1
WHERE
    outcome IS NOT NULL
    AND (
        (parent_id = ? AND child_id = ?)
    );
