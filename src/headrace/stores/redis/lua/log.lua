-- script: events
-- Read on in the event log.
--
-- uses     rows lanes log
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

-- script: history
-- The events of one job, from the newest back.
--
-- uses     rows holders
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

-- script: trim
-- Delete events from the front of the log, and forget deleted jobs that have no others.
--
-- uses     rows
-- keys     events gone
-- args     1 none after this seq   2 only those from before this time   3 at most so many
-- returns  how many went
-- errors   none of its own

local PAGE = 1000
local ARRAY_16 = 0xdc -- MessagePack's mark of a list of more than 15, with two bytes of length; else there is one

local upto, before, left = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local link_bytes = struct.size(LINK)

-- The first field of the event. Not all of them: cmsgpack does not know bytes that are no text.
local function time_of(packed)
  local first = string.byte(packed, link_bytes + 1)
  local head_bytes = first == ARRAY_16 and 3 or 1
  local _, at = cmsgpack.unpack_one(packed, link_bytes + head_bytes)
  return at
end

local gone, last, from = 0, 0, '-'
while left > 0 do
  local page = redis.call('XRANGE', K.events, from, '+', 'COUNT', math.min(left, PAGE))
  left = #page == PAGE and left - PAGE or 0
  for _, entry in ipairs(page) do
    local seq = tonumber(string.match(entry[1], '^%d+'))
    if seq > upto or time_of(entry[2][2]) >= before then
      left = 0
      break
    end
    gone, last, from = gone + 1, seq, '(' .. entry[1]
  end
end
if gone > 0 then
  redis.call('XTRIM', K.events, 'MINID', string.format('%d-0', last + 1))
  redis.call('ZREMRANGEBYSCORE', K.gone, '-inf', last)
end
return gone
