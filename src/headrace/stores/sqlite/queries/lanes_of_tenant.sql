-- The lanes of one tenant.
SELECT id FROM lanes WHERE tenant = ?;
