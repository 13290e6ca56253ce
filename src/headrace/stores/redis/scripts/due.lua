-- due: whole jobs whose time in a sorted set has come, the earliest first.
--
-- uses     rows lanes reply
-- keys     rows bodies more leases expiry lanes
-- args     1 which: leases or expiry   2 now   3 at most so many   4 tenant or ''   5 from this rank on
-- returns  { jobs as in reply, the rank to go on from or -1 when that was all }
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
