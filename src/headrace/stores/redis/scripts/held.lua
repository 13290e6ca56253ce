-- held: how many leases on some queues hold, by lane.
--
-- uses     rows lanes
-- keys     rows leases lanes
-- args     1     now
--          then  the queues
-- returns  { lanes, flat: number, names as JSON; flat: lane, jobs }
-- errors   none of its own

local queues, sums = {}, {}
for argument = 2, #ARGV do
  queues[ARGV[argument]] = true
end

-- One step, however many there are: a heartbeat between two would move a lease from one to the other.
local rank = redis.call('ZCOUNT', K.leases, '-inf', ARGV[1])
repeat
  local page = redis.call('ZRANGE', K.leases, rank, rank + CHUNK - 1)
  for _, packed in ipairs(fetch('HMGET', K.rows, page)) do
    local lane = struct.unpack(FRONT, packed)
    sums[lane] = (sums[lane] or 0) + 1
  end
  rank = rank + #page
until #page < CHUNK

local held, numbers = {}, {}
for lane, jobs in pairs(sums) do
  if queues[lane_names(lane)[2]] then
    numbers[#numbers + 1] = lane
    held[#held + 1] = lane
    held[#held + 1] = jobs
  end
end
return { named_lanes(numbers), held }
