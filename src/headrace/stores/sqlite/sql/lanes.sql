-- name: lane_add
-- A lane on its first job.
INSERT INTO lanes ({lane.key}) VALUES (?, ?, ?, ?, ?)

-- name: lane_id
-- The lane of a key, if there is one.
SELECT id
FROM lanes
WHERE tenant = ? AND queue = ? AND type = ? AND priority = ? AND limit_key IS ?

-- name: lane_keys
-- The keys of lanes.
SELECT
    lanes.id,
    {lane.of_lanes}
FROM json_each(?) AS wanted
CROSS JOIN lanes ON lanes.id = wanted.value

-- name: lane_move
-- Move the counts of a lane: jobs by state, then the failures of those jobs by state, in the order
-- of the states as the model lists them. One lane each: writes seldom touch more than a few.
UPDATE lanes
SET
    {lane.moved}
WHERE id = ?

-- name: lane_remove
-- A lane with a limit key goes with its last job.
DELETE FROM lanes
WHERE
    id = ?
    AND limit_key IS NOT NULL
    AND {lane.jobs} = 0
