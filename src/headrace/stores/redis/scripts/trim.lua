-- trim: delete events from the front of the log, and forget deleted jobs that have no others.
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
