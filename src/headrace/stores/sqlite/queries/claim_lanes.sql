-- The lanes that have claimable jobs, due or not. Lanes that have drained are not even looked at.
SELECT json_group_array(id)
FROM lanes INDEXED BY lanes_claimable
WHERE pending + retrying + lost > 0;
