-- A job is deleted: the edges into it go with it. Those from it stay, with their outcome.
DELETE FROM edges WHERE child_id = ?;
