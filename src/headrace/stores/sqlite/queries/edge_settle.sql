-- Parents have ended.
UPDATE edges
SET outcome = ended.column1
FROM (
    VALUES (?, ?)
) AS ended
WHERE edges.ord = ended.column2;
