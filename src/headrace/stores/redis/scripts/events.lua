-- events: read on in the event log.
--
-- uses     rows lanes start
-- keys     events lanes sequences
-- args     1 after this seq   2 at most so many   3 only of this tenant, or ''   4 1 if none may be missing
-- returns  { lanes, flat: number, names as JSON; events, flat: seq, lane, packed with its link; the last seq
--          looked at; 1 if the log may hold more after that }
--          or, where events after that seq have been trimmed and none may be missing, { the last of those }
-- errors   none of its own

local LOOKED_AT_MAX = 10000

local after, limit, tenant = ARGV[1], tonumber(ARGV[2]), ARGV[3]
if ARGV[4] == '1' then
  local trimmed = trimmed_upto()
  if tonumber(after) < trimmed then
    return { trimmed }
  end
end
local lanes, seen, events = {}, {}, {}
local found, looked_at, more = 0, 0, true
while found < limit and looked_at < LOOKED_AT_MAX and more do
  local size = tenant == '' and limit - found or 1000
  local page = redis.call('XRANGE', K.events, '(' .. after .. '-0', '+', 'COUNT', size)
  more = #page == size
  for _, entry in ipairs(page) do
    looked_at = looked_at + 1
    after = string.match(entry[1], '^%d+')
    local packed = entry[2][2]
    local lane = struct.unpack(LINK, packed)
    if tenant == '' or lane_names(lane)[1] == tenant then
      if not seen[lane] then
        seen[lane] = true
        lanes[#lanes + 1] = lane
        lanes[#lanes + 1] = redis.call('HGET', K.lanes, lane)
      end
      found = found + 1
      events[found * 3 - 2], events[found * 3 - 1], events[found * 3] = after, lane, packed
      if found >= limit then
        break
      end
    end
  end
end
return { lanes, events, after, (more or found >= limit) and 1 or 0 }
