-- writes: what a script has decided to write, gathered and then written with few calls.
--
-- uses     rows
-- keys     counts failures
--
-- Scripts check first and write last: Redis does not undo what a script wrote before it failed.
-- Removals go before additions, so that a job can leave a set and enter it again in one script.

local zadds, zrems, hsets, hdels = {}, {}, {}, {}
local moved_jobs, moved_failures = {}, {}

local function list_of(lists, key)
  local list = lists[key]
  if not list then
    list = {}
    lists[key] = list
  end
  return list
end

local function zadd(key, score, member)
  local list = list_of(zadds, key)
  local size = #list
  list[size + 1] = score
  list[size + 2] = member
end

local function zrem(key, member)
  local list = list_of(zrems, key)
  list[#list + 1] = member
end

local function hset(key, field, value)
  local list = list_of(hsets, key)
  local size = #list
  list[size + 1] = field
  list[size + 2] = value
end

local function hdel(key, field)
  local list = list_of(hdels, key)
  list[#list + 1] = field
end

-- Count a job that has failed so often into (1) or out of (-1) its lane's state.
local function move(line, failures, jobs)
  moved_jobs[line] = (moved_jobs[line] or 0) + jobs
  if failures > 0 then
    moved_failures[line] = (moved_failures[line] or 0) + jobs * failures
  end
end

local function call_with_all(command, lists)
  for key, list in pairs(lists) do
    for first = 1, #list, CHUNK do
      redis.call(command, key, unpack(list, first, math.min(first + CHUNK - 1, #list)))
    end
  end
end

-- A count that is zero leaves no field behind.
local function add_up(key, sums)
  for field, sum in pairs(sums) do
    if sum ~= 0 and redis.call('HINCRBY', key, field, sum) == 0 then
      redis.call('HDEL', key, field)
    end
  end
end

local function write_all()
  call_with_all('ZREM', zrems)
  call_with_all('HDEL', hdels)
  call_with_all('ZADD', zadds)
  call_with_all('HSET', hsets)
  add_up(K.counts, moved_jobs)
  add_up(K.failures, moved_failures)
end
