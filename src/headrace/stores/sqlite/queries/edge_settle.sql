-- The parent has ended.
UPDATE edges SET outcome = ? WHERE ord = ?;
