-- As claim_lanes.sql, of some queues: lanes of the others are not even looked at.
SELECT json_group_array(lanes.id)
FROM json_each(?) AS wanted
CROSS JOIN lanes INDEXED BY lanes_claimable ON lanes.queue = wanted.value
WHERE lanes.pending + lanes.retrying + lanes.lost > 0;
