-- count_tagged: of these jobs, how many match, by lane and state.
--
-- uses     rows lanes matching
-- keys     rows lanes
-- args     1     the filter, as in matching
--          2     now
--          then  handles
-- returns  flat: lane, state, jobs, those not due yet, the sum of their failures
-- errors   none of its own

local filter, now = cmsgpack.unpack(ARGV[1]), tonumber(ARGV[2])
local handles, sums, order = {}, {}, {}
for argument = 3, #ARGV do
  handles[argument - 2] = ARGV[argument]
end
for _, packed in ipairs(fetch('HMGET', K.rows, handles)) do
  if packed and matches(filter, packed) then
    local row = read_row(packed)
    local name = row.lane .. ':' .. row.state
    local sum = sums[name]
    if not sum then
      sum = { row.lane, row.state, 0, 0, 0 }
      sums[name] = sum
      order[#order + 1] = sum
    end
    sum[3] = sum[3] + 1
    sum[4] = sum[4] + ((CLAIMABLE[row.state] and row.run_at > now) and 1 or 0)
    sum[5] = sum[5] + row.failures
  end
end
local tallies = {}
for _, sum in ipairs(order) do
  for _, value in ipairs(sum) do
    tallies[#tallies + 1] = value
  end
end
return tallies
