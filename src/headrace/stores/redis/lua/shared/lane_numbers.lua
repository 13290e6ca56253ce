-- lane_numbers: the numbers of lanes, each given on the lane's first job.
--
-- uses     rows
-- keys     lanes lane_ids sequences

-- In the order of the names, which are as lanes.py packs them.
local function number_lanes(names)
  local numbers = fetch('HMGET', K.lane_ids, names)
  for index, text in ipairs(names) do
    if not numbers[index] then
      numbers[index] = redis.call('HINCRBY', K.sequences, 'lanes', 1)
      redis.call('HSET', K.lane_ids, text, numbers[index])
      redis.call('HSET', K.lanes, numbers[index], text)
    end
    numbers[index] = tonumber(numbers[index])
  end
  return numbers
end
