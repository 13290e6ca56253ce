-- The lane of a key, if any job ever had it.
SELECT id FROM lanes WHERE tenant = ? AND queue = ? AND type = ? AND priority = ?;
