-- indexes: the sorted sets in which a job stands by its state.
--
-- uses     rows writes lanes ready_set
-- keys     root leases blocked
-- derived  {root}:finished:<state>  zset  ended jobs by finalized_at, and those of ready_set (same hash tag
--                                         as the root)

local touched_lines, touched_tags = {}, {}
local known_firsts = {}

-- Who is first in a line, with the score: told by a script that has looked already.
local function know_first(line, first, score)
  known_firsts[line] = { first, score }
end

local function first_of(line)
  return redis.call('ZRANGE', line_key(line), 0, 0, 'WITHSCORES')
end

-- Note who is first in the line, and so how it is listed: nothing has been written to it yet.
local function touch(line, lane)
  if not touched_lines[line] then
    touched_lines[line] = { lane, known_firsts[line] or first_of(line) }
  end
end

-- The line is in no list yet, whoever is first in it.
local function touch_unlisted(line)
  touched_lines[line] = { lane_of(line), {} }
end

local function touch_tag(line, tag)
  touched_tags[tag] = touched_tags[tag] or {}
  touched_tags[tag][line] = true
end

local function enter_line(line, lane, handle, tags, run_at)
  touch(line, lane)
  zadd(line_key(line), run_at, handle)
  if tags ~= '' then
    for tag in each_tag(tags) do
      touch_tag(line, tag)
      zadd(tag_line_key(line, tag), run_at, handle)
    end
  end
end

local function leave_line(line, lane, handle, tags)
  touch(line, lane)
  zrem(line_key(line), handle)
  if tags ~= '' then
    for tag in each_tag(tags) do
      touch_tag(line, tag)
      zrem(tag_line_key(line, tag), handle)
    end
  end
end

-- List the line by its first job, if that is another than before; true if it is due at another time.
local function list_line(line, lane, before)
  local after = first_of(line)
  if after[1] == before[1] and after[2] == before[2] then
    return false
  end
  local names = lane_names(lane)
  local tenant, queue, priority = names[1], names[2], names[4]
  for _, key in ipairs({ lines_key(priority, nil, queue), lines_key(priority, tenant, queue) }) do
    if before[1] then
      redis.call('ZREM', key, listed_line(before[1], line))
    end
    if after[1] then
      redis.call('ZADD', key, after[2], listed_line(after[1], line))
    end
  end
  return after[2] ~= before[2]
end

-- List the queue by the first job of its first line.
local function list_queue(priority, tenant, queue)
  local first = redis.call('ZRANGE', lines_key(priority, tenant, queue), 0, 0, 'WITHSCORES')[2]
  if first then
    redis.call('ZADD', queues_key(priority, tenant), first, queue)
  else
    redis.call('ZREM', queues_key(priority, tenant), queue)
  end
end

-- After write_all: bring the lists up to date for each touched line.
local function write_lists()
  local queues = {}
  for line, touched in pairs(touched_lines) do
    local lane, before = touched[1], touched[2]
    if list_line(line, lane, before) then
      local names = lane_names(lane)
      local tenant, queue, priority = names[1], names[2], names[4]
      queues[lines_key(priority, nil, queue)] = { priority, nil, queue }
      queues[lines_key(priority, tenant, queue)] = { priority, tenant, queue }
    end
  end
  for _, queue in pairs(queues) do
    list_queue(queue[1], queue[2], queue[3])
  end
  for tag, lines in pairs(touched_tags) do
    for line in pairs(lines) do
      local waits = redis.call('EXISTS', tag_line_key(line, tag)) == 1
      redis.call(waits and 'SADD' or 'SREM', K.root .. ':tagged:' .. tag, line)
    end
  end
end

local function finished_key(state)
  return K.root .. ':finished:' .. state
end

-- List a job under its state. `position` is its score there: run_at while it waits, finalized_at when it has
-- ended; lease_until while it is leased, NONE without end. One that is blocked stands by its seq.
local function enter(lane, state, handle, failures, tags, position)
  local line = line_of(lane, state)
  move(line, failures, 1)
  if CLAIMABLE[state] then
    enter_line(line, lane, handle, tags, position)
  elseif LEASED[state] then
    zadd(K.leases, position == NONE and '+inf' or position, handle)
  elseif TERMINAL[state] then
    zadd(finished_key(state), position, handle)
  else
    zadd(K.blocked, tonumber(handle), handle)
  end
end

local function leave(lane, state, handle, failures, tags)
  local line = line_of(lane, state)
  move(line, failures, -1)
  if CLAIMABLE[state] then
    leave_line(line, lane, handle, tags)
  elseif LEASED[state] then
    zrem(K.leases, handle)
  elseif TERMINAL[state] then
    zrem(finished_key(state), handle)
  else
    zrem(K.blocked, handle)
  end
end
