-- history: the events of one job, from the newest back.
--
-- uses     rows holding
-- keys     jobs rows leases expiry keys events gone lanes
-- args     1 the id   2 down to, and without, this seq   3 at most so many   4 start at this seq, or 0
-- returns  { lanes, flat: number, names as JSON; events, flat: seq, lane, packed with its link; where to go on
--          or 0 }
-- errors   none of its own

local after, left, seq = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if seq == 0 then
  local packed = packed_row_of(ARGV[1])
  seq = packed and read_row(packed).event or tonumber(redis.call('ZSCORE', K.gone, ARGV[1]) or 0)
end
local lanes, seen, events = {}, {}, {}
while seq > after and left > 0 do
  local at = string.format('%d-0', seq)
  local entry = redis.call('XRANGE', K.events, at, at)[1]
  if not entry then
    seq = 0 -- older events have been trimmed
    break
  end
  local packed = entry[2][2]
  local lane, previous = struct.unpack(LINK, packed)
  if not seen[lane] then
    seen[lane] = true
    lanes[#lanes + 1] = lane
    lanes[#lanes + 1] = redis.call('HGET', K.lanes, lane)
  end
  for _, value in ipairs({ string.format('%d', seq), lane, packed }) do
    events[#events + 1] = value
  end
  seq = previous
  left = left - 1
end
return { lanes, events, seq > after and seq or 0 }
