-- lanes: all jobs of one tenant, queue, type, priority and limit key; each lane has a number.
--
-- keys     lanes

local known_lanes = {}

-- { tenant, queue, type, priority, limit key }; the last is not there where there is none.
local function lane_names(lane)
  local names = known_lanes[lane]
  if not names then
    names = cjson.decode(redis.call('HGET', K.lanes, lane))
    known_lanes[lane] = names
  end
  return names
end

-- As lanes.py reads them, flat: number, names as JSON.
local function named_lanes(numbers)
  local named = {}
  for index, names in ipairs(fetch('HMGET', K.lanes, numbers)) do
    named[index * 2 - 1], named[index * 2] = numbers[index], names
  end
  return named
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
