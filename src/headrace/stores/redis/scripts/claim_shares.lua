-- claim_shares: lease due jobs of given lanes, so many of each, and replace the gates that allowed it.
--
-- uses     rows writes blocks lanes lines lineup places log heap reply records requests walks picking leasing
-- keys     rows bodies more leases blocked blocks counts failures lanes lane_ids sequences events pauses root
-- derived  those of lines and records
-- args     1     the request, as in requests
--          2     { lanes { { names as JSON, jobs } }, shares { { place of its lane, jobs } } }: a lane may
--                have several shares, and its jobs are their sum
--          3     where to go on: { place of a lane, { run_at, handle } } packed, or ''
--          then  per gate: kind, name, version as read, new body
-- returns  { jobs as in reply, where to go on or false }, in the order of the shares. Where to go on is
--          said as claim says it; then nothing was written.
--          false: a gate is not at its version; nothing was leased and nothing written
-- errors   CORRUPT: a waiting job has no row; nothing was written

local GATES = 4 -- the first argument of the first gate

for gate = GATES, #ARGV, 4 do
  if record_version(ARGV[gate], ARGV[gate + 1]) ~= tonumber(ARGV[gate + 2]) then
    return false
  end
end

local lanes, shares = unpack(cmsgpack.unpack(ARGV[2]))
local resume = ARGV[3] ~= '' and cmsgpack.unpack(ARGV[3])

-- Each lane's jobs are picked in one go; `taken` holds those of one lane after those of another.

local names, place, next_of, last_of = {}, resume and resume[1] or 1, {}, {}
for index, lane in ipairs(lanes) do
  names[index] = lane[1]
end
local numbers = fetch('HMGET', K.lane_ids, names)
while lanes[place] and not stopped_at do
  local number = numbers[place] and tonumber(numbers[place])
  next_of[place] = #taken + 1
  if number and is_wanted(line_of(number, 'p'), false) then
    heap = {}
    for state in pairs(CLAIMABLE) do
      open(line_of(number, state), resume and resume[1] == place and resume[2])
    end
    take(#taken + lanes[place][2])
  end
  last_of[place] = #taken
  place = place + 1
end
if stopped_at and #taken == 0 then
  return { { {}, {}, {} }, cmsgpack.pack({ place - 1, stopped_at }) }
end

local handles, lines = {}, {}
for _, share in ipairs(shares) do
  local lane = share[1]
  local first = next_of[lane] or 1
  local last = math.min(last_of[lane] or 0, first + share[2] - 1, first + limit - #handles - 1)
  for index = first, last do
    handles[#handles + 1] = taken[index]
    lines[#handles] = lines_taken[index]
  end
  next_of[lane] = math.max(first, last + 1)
end

local jobs, damage = lease_jobs(handles, lines)
if damage then
  return redis.error_reply(damage)
end
for gate = GATES, #ARGV, 4 do
  write_record(ARGV[gate], ARGV[gate + 1], ARGV[gate + 2] + 1, ARGV[gate + 3])
end
return { jobs, false }
