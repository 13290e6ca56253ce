-- lanes: all jobs of one tenant, queue, type, priority and limit key; each lane has a number.
--
-- uses     rows
-- keys     lanes

local known_lanes, known_texts = {}, {}

-- The names of a lane as lanes.py packs them.
local function lane_text(lane)
  local text = known_texts[lane]
  if not text then
    text = redis.call('HGET', K.lanes, lane)
    known_texts[lane] = text
  end
  return text
end

-- { tenant, queue, type, priority, limit key }; the last is not there where there is none.
local function lane_names(lane)
  local names = known_lanes[lane]
  if not names then
    names = cjson.decode(lane_text(lane))
    known_lanes[lane] = names
  end
  return names
end

-- As lanes.py reads them, flat: number, names as JSON.
local function named_lanes(numbers)
  local named, unknown = {}, {}
  for _, lane in ipairs(numbers) do
    if not known_texts[lane] then
      unknown[#unknown + 1] = lane
    end
  end
  for index, text in ipairs(fetch('HMGET', K.lanes, unknown)) do
    known_texts[unknown[index]] = text
  end
  for index, lane in ipairs(numbers) do
    named[index * 2 - 1], named[index * 2] = lane, known_texts[lane]
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
