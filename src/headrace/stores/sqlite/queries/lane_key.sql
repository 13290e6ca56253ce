-- The key of a lane.
SELECT tenant, queue, type, priority FROM lanes WHERE id = ?;
