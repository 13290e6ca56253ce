-- script: get
-- Whole jobs by id.
--
-- uses     rows jobs_reply
-- keys     jobs rows bodies more leases lanes
-- args     1     stop when the bodies found come to so many bytes
--          then  the ids
-- returns  { jobs as in jobs_reply, those that exist; how many of the ids were looked at }
-- errors   none of its own

local bytes_left = tonumber(ARGV[1])
local handles, ids = {}, {}
for argument = 2, #ARGV do
  ids[argument - 1] = ARGV[argument]
end
local looked_at = 0
for index, seq in ipairs(fetch('ZMSCORE', K.jobs, ids)) do
  if bytes_left <= 0 then
    break
  end
  looked_at = index
  if seq then
    handles[#handles + 1] = handle_of(tonumber(seq))
    bytes_left = bytes_left - redis.call('HSTRLEN', K.bodies, handles[#handles])
  end
end
return { jobs_reply(handles, fetch('HMGET', K.rows, handles)), looked_at }

-- script: count
-- How many jobs the given lanes have, by state.
--
-- uses     rows
-- keys     counts failures root
-- derived  {root}:line:<lane>:<state>  zset, see ready_set (same hash tag as the root)
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

-- script: count_tagged
-- Of these jobs, how many match, by lane and state.
--
-- uses     rows filter
-- keys     rows lanes
-- args     1     the filter, as in filter
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

-- script: backlog
-- How many jobs have not started yet, and the bytes of their payloads.
--
-- uses     rows lanes ready_set
-- keys     rows bodies blocked lanes root
-- derived  those of ready_set
-- args     1  only of this tenant, or ''   2  only of this queue, or ''
--          3  where to go on: what the call before returned, or ''
-- returns  { jobs, bytes, where to go on or false }
-- errors   none of its own
--
-- A payload's length is known only from the body, so a call reads a bounded number of those.

local JOBS_MAX = 5000
local BYTES_MAX = 64 * 1024 * 1024
local PAGE = 500

local tenant, queue = ARGV[1] ~= '' and ARGV[1], ARGV[2] ~= '' and ARGV[2]

-- { key, from this rank on }
local function lists()
  local found = { { K.blocked, 0 } }
  for priority = 0, PRIORITY_LAST do
    local queues = queue and { queue } or redis.call('ZRANGE', queues_key(priority, tenant), 0, -1)
    for _, one in ipairs(queues) do
      for _, member in ipairs(redis.call('ZRANGE', lines_key(priority, tenant, one), 0, -1)) do
        found[#found + 1] = { line_key(line_listed(member)), 0 }
      end
    end
  end
  return found
end

-- Lines are those of the tenant and queue already, blocked jobs are all in one place.
local function is_wanted(key, handle)
  if key ~= K.blocked or not (tenant or queue) then
    return true
  end
  local names = lane_names((struct.unpack(FRONT, redis.call('HGET', K.rows, handle))))
  return (not tenant or names[1] == tenant) and (not queue or names[2] == queue)
end

local looked_at, jobs, bytes, rest = 0, 0, 0, {}

local function is_enough()
  return looked_at >= JOBS_MAX or bytes >= BYTES_MAX
end

-- Add up the list as far as the call may go; the rank to go on from, or nil at its end.
local function add_up(key, rank)
  if is_enough() then
    return rank
  end
  repeat
    local page = redis.call('ZRANGE', key, rank, rank + PAGE - 1)
    for _, handle in ipairs(page) do
      if is_enough() then
        return rank
      end
      if is_wanted(key, handle) then
        local _, _, length = payload_of(redis.call('HGET', K.bodies, handle))
        jobs, bytes = jobs + 1, bytes + length
      end
      looked_at, rank = looked_at + 1, rank + 1
    end
  until #page < PAGE
end

for _, list in ipairs(ARGV[3] == '' and lists() or cmsgpack.unpack(ARGV[3])) do
  local rank = add_up(list[1], list[2])
  if rank then
    rest[#rest + 1] = { list[1], rank }
  end
end
return { jobs, bytes, #rest > 0 and cmsgpack.pack(rest) }
