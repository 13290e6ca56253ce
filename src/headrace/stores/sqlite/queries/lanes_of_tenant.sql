-- The lanes of one tenant.
SELECT json_group_array(id) FROM lanes WHERE tenant = ?;
