-- heads: the lanes with due jobs that match, the run_at of the first and how many there are.
--
-- uses     rows lanes lines requests walks
-- keys     lanes pauses root
-- derived  those of lines
-- args     1  the request, as in requests; jobs are counted up to its limit
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
  local walk = walk_of(line, after)
  while walk and jobs < limit do
    if has_other_tags(walk) then
      first = first or walk.score
      jobs = jobs + 1
    end
    if probes >= PROBES_MAX then
      return first, jobs, { walk.score, walk.member }
    end
    walk = advance(walk) and walk
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
