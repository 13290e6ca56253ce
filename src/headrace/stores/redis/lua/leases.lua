-- script: extend
-- Let leases that hold last longer.
--
-- uses     holders
-- keys     jobs rows leases expiry keys
-- args     1     now
--          then  per lease: id, token, lease_until ('+inf': without end)
-- returns  per lease: the job's state, or '' if the lease does not hold (it is left alone)
-- errors   none of its own

local now = tonumber(ARGV[1])
local states = {}
for argument = 2, #ARGV, 3 do
  local row, handle = held_by(ARGV[argument], ARGV[argument + 1], now)
  if row then
    redis.call('ZADD', K.leases, ARGV[argument + 2], handle)
  end
  states[#states + 1] = row and row.state or ''
end
return states

-- script: annotate
-- Write what the holder of a lease says of its job.
--
-- uses     rows holders
-- keys     jobs rows leases expiry keys more
-- args     1 now   2 id   3 token
--          then    per thing said: its letter (p progress, n note, c checkpoint, l log), its value
-- returns  1 written, 0 the lease does not hold
-- errors   none of its own

local row, handle, packed = held_by(ARGV[2], ARGV[3], tonumber(ARGV[1]))
if not row then
  return 0
end
local flags = row.flags
for argument = 4, #ARGV, 2 do
  flags = bit.bor(flags, MORE[ARGV[argument]])
  redis.call('HSET', K.more, handle .. ARGV[argument], ARGV[argument + 1])
end
if flags ~= row.flags then
  redis.call('HSET', K.rows, handle, with_flags(row, packed, flags))
end
return 1

-- script: due
-- Whole jobs whose time in a sorted set has come, the earliest first.
--
-- uses     rows lanes jobs_reply
-- keys     rows bodies more leases expiry lanes
-- args     1 which: leases or expiry   2 now   3 at most so many   4 tenant or ''   5 from this rank on
-- returns  { jobs as in jobs_reply, the rank to go on from or -1 when that was all }
-- errors   none of its own

local LOOKED_AT_MAX = 10000
local PAGE = 1000

local key = ARGV[1] == 'leases' and K.leases or K.expiry
local now, limit, tenant, rank = ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local handles, rows = {}, {}
local last = rank + LOOKED_AT_MAX
local page, at = {}, 1
while #handles < limit do
  if at > #page then
    page = rank < last and redis.call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', rank, math.min(PAGE, limit)) or {}
    at = 1
    if #page == 0 then
      break
    end
  end
  local handle = page[at]
  local packed = redis.call('HGET', K.rows, handle)
  if tenant == '' or lane_names(read_row(packed).lane)[1] == tenant then
    handles[#handles + 1] = handle
    rows[#rows + 1] = packed
  end
  at = at + 1
  rank = rank + 1
end
local all = #handles < limit and rank < last
return { jobs_reply(handles, rows), all and -1 or rank }
