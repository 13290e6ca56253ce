-- request: what a claim asks for, and which queues and lines may give it.
--
-- uses     lanes ready_set
-- keys     pauses root
--
-- ARGV[1] is the request: { now, limit, worker, nonce, lease in µs or false, tenant or false, queues or
-- false, types or false, tags (may be empty), up to when a job counts as due }.

local now, limit, worker, nonce, lease_us, tenant, queues, types, tags, horizon = unpack(cmsgpack.unpack(ARGV[1]))
local wanted_types, wanted_queues = set_of(types), set_of(queues)
local paused = set_of(redis.call('HKEYS', K.pauses)) -- queue, or queue \n tenant
local limited = {}

-- Pass these queues over as if they were paused.
local function pass_over(queues_with_limits)
  limited = set_of(queues_with_limits)
end

local function is_passed_over(queue, of_tenant)
  return paused[queue] or limited[queue] or (of_tenant and paused[queue .. '\n' .. of_tenant])
end

-- `listed`: the line comes from a list of lines that has no other tenants and queues than wanted.
local function is_wanted(line, listed)
  if listed and not wanted_types and (tenant or next(paused) == nil) then
    return true
  end
  local names = lane_names(lane_of(line))
  return (listed or not tenant or names[1] == tenant)
    and (listed or not wanted_queues or wanted_queues[names[2]])
    and (not wanted_types or wanted_types[names[3]])
    and not is_passed_over(names[2], names[1])
end

-- By priority, the wanted lines with waiting jobs that have the rarest of the tags.
local function tagged_lines()
  local key, fewest
  for _, tag in ipairs(tags) do
    local lines = redis.call('SCARD', K.root .. ':tagged:' .. tag)
    if not fewest or lines < fewest then
      key, fewest = K.root .. ':tagged:' .. tag, lines
    end
  end
  local lines = {}
  for _, line in ipairs(redis.call('SMEMBERS', key)) do
    if is_wanted(line, false) then
      local priority = lane_names(lane_of(line))[4]
      lines[priority] = lines[priority] or {}
      table.insert(lines[priority], line)
    end
  end
  return lines
end
