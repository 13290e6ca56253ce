-- next_due: when the next waiting job that matches becomes due.
--
-- uses     rows lanes lines requests
-- keys     lanes pauses root
-- derived  those of lines
-- args     1  the request, as in requests; its limit and its tags are not looked at
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
