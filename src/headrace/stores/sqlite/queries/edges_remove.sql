-- Jobs are deleted: the edges into them go with them. Those from them stay, with their outcome.
DELETE FROM edges WHERE child_id IN (SELECT value FROM json_each(?));
