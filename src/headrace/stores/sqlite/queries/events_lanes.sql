-- The lanes by which events name one tenant: those without a limit key.
SELECT json_group_array(id)
FROM lanes INDEXED BY lanes_without_key
WHERE tenant = ? AND limit_key IS NULL;
