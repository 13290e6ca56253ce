-- lanes: all jobs of one tenant, queue, type and priority; each lane has a number.
--
-- keys     lanes

local known_lanes = {}

-- { tenant, queue, type, priority }
local function lane_names(lane)
  local names = known_lanes[lane]
  if not names then
    names = cjson.decode(redis.call('HGET', K.lanes, lane))
    known_lanes[lane] = names
  end
  return names
end

-- A list as a set; false (no filter) stays false.
local function set_of(list)
  if not list then
    return false
  end
  local set = {}
  for _, item in ipairs(list) do
    set[item] = true
  end
  return set
end
