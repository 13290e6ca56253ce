-- The child has been judged by this outcome.
UPDATE edges SET seen = 1 WHERE parent_id = ? AND child_id = ? AND outcome IS NOT NULL;
