-- The keys of lanes.
SELECT
    lanes.id,
    lanes.tenant,
    lanes.queue,
    lanes.type,
    lanes.priority,
    lanes.limit_key
FROM json_each(?) AS wanted
CROSS JOIN lanes ON lanes.id = wanted.value;
