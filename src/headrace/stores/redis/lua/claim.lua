-- script: claim
-- Lease due jobs, in the order priority, run_at, seq.
--
-- uses     records request ready_set cursor lease
-- keys     rows bodies more leases blocked blocks counts failures lanes sequences events pauses root
-- derived  those of ready_set and records
-- args     1  the request, as in request
--          2  where to go on: { priority, { run_at, handle } } packed, or ''
-- returns  { jobs as in jobs_reply, where to go on or false }: with more than one tag a call looks at a
--          bounded number of jobs; if it leased none by then it says where the next call goes on
-- errors   CORRUPT: a waiting job has no row; nothing was written

local resume = ARGV[2] ~= '' and cmsgpack.unpack(ARGV[2])
pass_over(redis.call('HKEYS', records_key(GATE)))

local pick = new_pick()
local tagged = #tags > 0 and tagged_lines()
local priority = resume and resume[1] or 0
while priority <= PRIORITY_LAST and #pick.handles < limit do
  local list
  pick.heap = {}
  if tagged then
    for _, line in ipairs(tagged[priority] or {}) do
      open(pick, line, resume and resume[1] == priority and resume[2])
    end
  elseif queues then
    for queue in pairs(wanted_queues) do
      open_queue(pick, priority, queue)
    end
  else
    list = cursor_along(queues_key(priority, tenant), 0, PAGE)
  end
  take(pick, limit, priority, list)
  if pick.stopped_at then
    break
  end
  priority = priority + 1
end

local jobs, damage = lease_jobs(pick.handles, pick.lines)
if damage then
  return redis.error_reply(damage)
end
local is_unfinished = pick.stopped_at and #pick.handles == 0
return { jobs, is_unfinished and cmsgpack.pack({ priority, pick.stopped_at }) }

-- script: claim_shares
-- Lease due jobs of given lanes, so many of each, and replace the gates that allowed it.
--
-- uses     rows records request lease
-- keys     rows bodies more leases blocked blocks counts failures lanes lane_ids sequences events pauses root
-- derived  those of ready_set and records
-- args     1     the request, as in request
--          2     { lanes { { names as JSON, jobs } }, shares { { place of its lane, jobs } } }: a lane may
--                have several shares, and its jobs are their sum
--          3     where to go on: { place of a lane, { run_at, handle } } packed, or ''
--          then  per gate: kind, name, version as read, new body
-- returns  { jobs as in jobs_reply, where to go on or false }, in the order of the shares. Where to go on is
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

-- Each lane's jobs are picked in one go, those of one lane after those of another.

local pick = new_pick()
local names, place, next_of, last_of = {}, resume and resume[1] or 1, {}, {}
for index, lane in ipairs(lanes) do
  names[index] = lane[1]
end
local numbers = fetch('HMGET', K.lane_ids, names)
while lanes[place] and not pick.stopped_at do
  local number = numbers[place] and tonumber(numbers[place])
  next_of[place] = #pick.handles + 1
  if number and is_wanted(line_of(number, 'p'), false) then
    pick.heap = {}
    for state in pairs(CLAIMABLE) do
      open(pick, line_of(number, state), resume and resume[1] == place and resume[2])
    end
    take(pick, #pick.handles + lanes[place][2])
  end
  last_of[place] = #pick.handles
  place = place + 1
end
if pick.stopped_at and #pick.handles == 0 then
  return { { {}, {}, {} }, cmsgpack.pack({ place - 1, pick.stopped_at }) }
end

local handles, lines = {}, {}
for _, share in ipairs(shares) do
  local lane = share[1]
  local first = next_of[lane] or 1
  local last = math.min(last_of[lane] or 0, first + share[2] - 1, first + limit - #handles - 1)
  for index = first, last do
    handles[#handles + 1] = pick.handles[index]
    lines[#handles] = pick.lines[index]
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

-- script: heads
-- The lanes with due jobs that match, the run_at of the first and how many there are.
--
-- uses     lanes ready_set request cursor
-- keys     lanes pauses root
-- derived  those of ready_set
-- args     1  the request, as in request; jobs are counted up to its limit
--          2  where to go on: what the call before returned, or ''
-- returns  { lanes, flat: number, names as JSON; flat: lane, run_at, jobs; where to go on or false }. A
--          lane may come several times, once per line and call.
-- errors   none of its own

local LINES_MAX = 10000

-- Flat: line, the run_at of its first job or false. `position`: where to go on in the first of them.
local found, position = {}, false

local function find_tagged()
  for _, lines in pairs(tagged_lines()) do
    for _, line in ipairs(lines) do
      found[#found + 1] = line
      found[#found + 1] = false
    end
  end
end

local function find_in_queue(priority, queue)
  local listed = redis.call('ZRANGEBYSCORE', lines_key(priority, tenant, queue), '-inf', horizon, 'WITHSCORES')
  for index = 1, #listed, 2 do
    local line = line_listed(listed[index])
    if is_wanted(line, true) then
      found[#found + 1] = line
      found[#found + 1] = tonumber(listed[index + 1])
    end
  end
end

local function find()
  for priority = 0, PRIORITY_LAST do
    local due = wanted_queues or set_of(redis.call('ZRANGEBYSCORE', queues_key(priority, tenant), '-inf', horizon))
    for queue in pairs(due) do
      if not is_passed_over(queue, tenant) then
        find_in_queue(priority, queue)
      end
    end
  end
end

-- The run_at of the first due job with the one tag, and the number of them.
local function count_with_tag(line)
  local key = tag_line_key(line, tags[1])
  local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
  return tonumber(first), redis.call('ZCOUNT', key, '-inf', horizon)
end

-- The same with several tags; and where the call has to stop, if it has to.
local function count_with_tags(line, after)
  local first, jobs = nil, 0
  local cursor = cursor_of(line, after)
  while cursor and jobs < limit do
    if has_other_tags(cursor) then
      first = first or cursor.score
      jobs = jobs + 1
    end
    if is_used_up() then
      return first, jobs, { cursor.score, cursor.member }
    end
    cursor = advance(cursor) and cursor
  end
  return first, jobs
end

local function count(line, first, after)
  if #tags == 0 then
    return first, redis.call('ZCOUNT', line_key(line), '-inf', horizon)
  end
  local count_tagged = #tags == 1 and count_with_tag or count_with_tags
  return count_tagged(line, after)
end

if ARGV[2] ~= '' then
  found, position = unpack(cmsgpack.unpack(ARGV[2]))
elseif #tags > 0 then
  find_tagged()
else
  find()
end
local heads, numbers, seen = {}, {}, {}
local index, last = 1, math.min(#found, LINES_MAX * 2)
while index <= last do
  local line = found[index]
  local first, jobs, stopped_at = count(line, found[index + 1], position)
  if jobs > 0 then
    local lane, size = lane_of(line), #heads
    heads[size + 1], heads[size + 2], heads[size + 3] = lane, first, jobs
    if not seen[lane] then
      seen[lane] = true
      numbers[#numbers + 1] = lane
    end
  end
  position = stopped_at or false
  if position then
    break
  end
  index = index + 2
end
local rest = {}
for place = index, #found do
  rest[#rest + 1] = found[place]
end
return { named_lanes(numbers), heads, #rest > 0 and cmsgpack.pack({ rest, position }) }

-- script: next_due
-- When the next waiting job that matches becomes due.
--
-- uses     lanes ready_set request
-- keys     lanes pauses root
-- derived  those of ready_set
-- args     1  the request, as in request; its limit and its tags are not looked at
-- returns  the run_at, or false: none waits for its time, or more lines would have to be looked at
-- errors   none of its own

local LINES_MAX = 10000

local later = string.format('(%.0f', horizon)
local lines_seen, first = 0, nil

local function note(score)
  local run_at = tonumber(score)
  if run_at and (not first or run_at < first) then
    first = run_at
  end
end

-- Lines whose first job is due stand before the others; in those, look behind what is due.
local function look_in_queue(priority, queue)
  local key = lines_key(priority, tenant, queue)
  for _, listed in ipairs(redis.call('ZRANGEBYSCORE', key, '-inf', horizon, 'LIMIT', 0, LINES_MAX)) do
    lines_seen = lines_seen + 1
    local line = line_listed(listed)
    if is_wanted(line, true) then
      note(redis.call('ZRANGEBYSCORE', line_key(line), later, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2])
    end
  end
  local rank, page = 0, 1
  while lines_seen < LINES_MAX do
    local listed = redis.call('ZRANGEBYSCORE', key, later, '+inf', 'WITHSCORES', 'LIMIT', rank, page)
    for index = 1, #listed, 2 do
      lines_seen = lines_seen + 1
      if is_wanted(line_listed(listed[index]), true) then
        note(listed[index + 1])
        return
      end
    end
    if #listed < page * 2 then
      return
    end
    rank, page = rank + page, page * 4
  end
end

for priority = 0, PRIORITY_LAST do
  local waiting = wanted_queues or set_of(redis.call('ZRANGE', queues_key(priority, tenant), 0, -1))
  for queue in pairs(waiting) do
    if not is_passed_over(queue, tenant) then
      look_in_queue(priority, queue)
    end
  end
end
return lines_seen < LINES_MAX and first or false

-- script: held
-- How many leases on some queues hold, by lane.
--
-- uses     rows lanes
-- keys     rows leases lanes
-- args     1     now
--          then  the queues
-- returns  { lanes, flat: number, names as JSON; flat: lane, jobs }
-- errors   none of its own

local queues, sums = {}, {}
for argument = 2, #ARGV do
  queues[ARGV[argument]] = true
end

-- One step, however many there are: a heartbeat between two would move a lease from one to the other.
local rank = redis.call('ZCOUNT', K.leases, '-inf', ARGV[1])
repeat
  local page = redis.call('ZRANGE', K.leases, rank, rank + CHUNK - 1)
  for _, packed in ipairs(fetch('HMGET', K.rows, page)) do
    local lane = struct.unpack(FRONT, packed)
    sums[lane] = (sums[lane] or 0) + 1
  end
  rank = rank + #page
until #page < CHUNK

local held, numbers = {}, {}
for lane, jobs in pairs(sums) do
  if queues[lane_names(lane)[2]] then
    numbers[#numbers + 1] = lane
    held[#held + 1] = lane
    held[#held + 1] = jobs
  end
end
return { named_lanes(numbers), held }
