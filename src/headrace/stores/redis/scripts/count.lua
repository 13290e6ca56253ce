-- count: how many jobs the given lanes have, by state.
--
-- uses     rows
-- keys     counts failures root
-- derived  {root}:line:<lane>:<state>  zset, see lines (same hash tag as the root)
-- args     1     now
--          then  numbers of lanes
-- returns  flat: lane, state, jobs, those not due yet, the sum of their failures; none that are zero
-- errors   none of its own

local now = ARGV[1]
local fields = {}
for argument = 2, #ARGV do
  for state in string.gmatch('bprgtlcfdxa', '.') do
    fields[#fields + 1] = ARGV[argument] .. ':' .. state
  end
end
local failures = fetch('HMGET', K.failures, fields)
local tallies = {}
for index, jobs in ipairs(fetch('HMGET', K.counts, fields)) do
  if jobs then
    local lane, state = string.match(fields[index], '^(%d+):(.)$')
    local delayed = 0
    if CLAIMABLE[state] then
      delayed = redis.call('ZCOUNT', K.root .. ':line:' .. fields[index], '(' .. now, '+inf')
    end
    for _, value in ipairs({ lane, state, jobs, delayed, failures[index] or 0 }) do
      tallies[#tallies + 1] = value
    end
  end
end
return tallies
