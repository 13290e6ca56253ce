-- extend: let leases that hold last longer.
--
-- uses     rows holding
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
