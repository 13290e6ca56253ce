-- script: pick
-- Of these jobs, in this order, whole those that match every filter.
--
-- uses     rows filter jobs_reply
-- keys     rows bodies more leases lanes
-- args     1     the filter, as in filter
--          2     at most so many jobs
--          3     stop when the bodies found come to so many bytes
--          then  handles
-- returns  { jobs as in jobs_reply, how many of the handles were looked at }
-- errors   none of its own

local filter = cmsgpack.unpack(ARGV[1])
local limit, bytes_left = tonumber(ARGV[2]), tonumber(ARGV[3])
local candidates, handles, rows = {}, {}, {}
for argument = 4, #ARGV do
  candidates[argument - 3] = ARGV[argument]
end
local looked_at = 0
for index, packed in ipairs(fetch('HMGET', K.rows, candidates)) do
  if #handles >= limit or bytes_left <= 0 then
    break
  end
  looked_at = index
  if packed and matches(filter, packed) then
    handles[#handles + 1] = candidates[index]
    rows[#rows + 1] = packed
    bytes_left = bytes_left - redis.call('HSTRLEN', K.bodies, candidates[index])
  end
end
return { jobs_reply(handles, rows), looked_at }

-- script: lists
-- The sorted sets that hold the jobs of some states, and how many jobs those are.
--
-- uses     rows ready_set
-- keys     leases blocked root
-- derived  {root}:finished:<state>, see indexes, and those of ready_set (same hash tag as the root)
-- args     1 the states' letters   2 only ended before this (a ZCOUNT bound), or ''
-- returns  { names, without the root; number of jobs in them }: a set may also hold jobs of another state
-- errors   none of its own

local names, jobs = {}, 0

local function add(name, count)
  if count > 0 then
    names[#names + 1] = name
    jobs = jobs + count
  end
end

local leased, lines = false, {}
for state in string.gmatch(ARGV[1], '.') do
  if TERMINAL[state] then
    local name = 'finished:' .. state
    local key = K.root .. ':' .. name
    if ARGV[2] == '' then
      add(name, redis.call('ZCARD', key))
    else
      add(name, redis.call('ZCOUNT', key, '-inf', ARGV[2]))
    end
  elseif LEASED[state] then
    leased = true
  elseif CLAIMABLE[state] then
    lines[state] = true
  else
    add('blocked', redis.call('ZCARD', K.blocked))
  end
end
if leased then
  add('leases', redis.call('ZCARD', K.leases))
end
if next(lines) then
  for priority = 0, PRIORITY_LAST do
    for _, queue in ipairs(redis.call('ZRANGE', queues_key(priority), 0, -1)) do
      for _, member in ipairs(redis.call('ZRANGE', lines_key(priority, nil, queue), 0, -1)) do
        local line = line_listed(member)
        if lines[string.sub(line, -1)] then
          add('line:' .. line, redis.call('ZCARD', line_key(line)))
        end
      end
    end
  end
end
return { names, jobs }

-- script: gather
-- The jobs in some sorted sets, one set after the other.
--
-- keys     root
-- derived  {root}:<name> for the names that are given, as lists returns them (same hash tag as the root)
-- args     1     up to this score (a ZRANGEBYSCORE bound)
--          2     how many of the first set to skip
--          3     at most so many jobs
--          then  names of the sets
-- returns  { handles, how many of the sets are through, how many of the next one to skip }
-- errors   none of its own

local skip, limit = tonumber(ARGV[2]), tonumber(ARGV[3])
local handles, through = {}, 0
for argument = 4, #ARGV do
  local wanted = limit - #handles
  local key = K.root .. ':' .. ARGV[argument]
  local page = redis.call('ZRANGEBYSCORE', key, '-inf', ARGV[1], 'LIMIT', skip, wanted)
  for _, handle in ipairs(page) do
    handles[#handles + 1] = handle
  end
  if #page == wanted then
    return { handles, through, skip + #page }
  end
  skip, through = 0, through + 1
end
return { handles, through, 0 }

-- script: scan
-- Whole, in order of seq, the jobs that match every filter; a part of all jobs per call.
--
-- uses     rows lanes filter jobs_reply blocks
-- keys     rows bodies more leases lanes jobs blocks sequences counts failures
-- args     1  the filter, as in filter
--          2  what a row must have to be looked at closely: { numbers of lanes or false, letters of states
--             or false, texts that stand in the row, assignee or false }
--          3  'a' in ascending order, 'd' in descending   4  after this seq, or ''
--          5  at most so many jobs   6  stop when the bodies found come to so many bytes
--          7  look at so many rows, and as many blocks
-- returns  { jobs as in jobs_reply, the last seq that was looked at or '' if there is no more, how many rows
--          were looked at }
-- errors   none of its own
--
-- It goes block by block, and passes over those that have no job of the wanted lanes, or of the assignee's. Most
-- seqs of a block have a job, so that handles are made rather than asked for; where few do, they are asked for.

local STATE_AT = 15
local BLOCKS = 1000 -- read at once

local filter = cmsgpack.unpack(ARGV[1])
local lanes, states, texts, assignee = unpack(cmsgpack.unpack(ARGV[2]))
local is_ascending, after = ARGV[3] == 'a', tonumber(ARGV[4])
local limit, bytes_left, looks = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local lane_heads
if lanes then
  lane_heads = {}
  for _, lane in ipairs(lanes) do
    lane_heads[struct.pack('>I4', lane)] = true
  end
end
lanes, states = set_of(lanes), set_of(states)

local function end_of(rank)
  return tonumber(redis.call('ZRANGE', K.jobs, rank, rank, 'WITHSCORES')[2])
end

local first, last = end_of(0), end_of(-1)
if not first then
  return { { {}, {}, {} }, '', 0 }
end
local step = is_ascending and 1 or -1
local from, to = is_ascending and first or last, is_ascending and last or first
if after then
  from = is_ascending and math.max(first, after + 1) or math.min(last, after - 1)
end
local unlisted = tonumber(redis.call('HGET', K.sequences, 'unlisted') or 0) -- the first block with an entry

local function has_lane(named)
  for lane in string.gmatch(named, '%d+') do
    if lanes[tonumber(lane)] then
      return true
    end
  end
  return false
end

-- Whether the block may have a job that is wanted, and how many jobs it has, nil if nobody knows.
local function look_at_block(block, entry)
  if block < unlisted then
    return true, nil
  elseif not entry then
    return false, 0
  end
  local jobs, named, workers = read_block(entry)
  return (not lanes or has_lane(named))
    and (not assignee or names_worker(workers, assignee) or names_worker(workers, ANY_WORKER)), jobs
end

-- As handle_of makes them.
local function made(start, bound)
  local handles = {}
  for seq = start, bound, step do
    handles[#handles + 1] = handle_of(seq)
  end
  return handles
end

local function asked(start, bound)
  local command = is_ascending and 'ZRANGEBYSCORE' or 'ZREVRANGEBYSCORE'
  local flat = redis.call(command, K.jobs, string.format('%d', start), string.format('%d', bound), 'WITHSCORES')
  local handles = {}
  for index = 2, #flat, 2 do
    handles[index / 2] = handle_of(tonumber(flat[index]))
  end
  return handles
end

local function has_texts(packed)
  for _, text in ipairs(texts) do
    if not string.find(packed, text, 1, true) then
      return false
    end
  end
  return true
end

local found, rows, looked_at = {}, {}, 0

-- Look at the rows; the handle of the last one if no more fit into the answer.
local function look_at_rows(handles)
  for index, packed in ipairs(fetch('HMGET', K.rows, handles)) do
    looked_at = looked_at + 1
    if packed
      and (not lane_heads or lane_heads[string.sub(packed, 1, 4)])
      and (not states or states[string.sub(packed, STATE_AT, STATE_AT)])
      and has_texts(packed) and matches(filter, packed) then
      found[#found + 1], rows[#rows + 1] = handles[index], packed
      bytes_left = bytes_left - redis.call('HSTRLEN', K.bodies, handles[index])
      if #found >= limit or bytes_left <= 0 then
        return handles[index]
      end
    end
  end
end

local block, last_block = block_of(from), block_of(to)
while (last_block - block) * step >= 0 and looks > 0 do
  local page = {}
  for place = 1, math.min(BLOCKS, (last_block - block) * step + 1, looks) do
    page[place] = block + (place - 1) * step
  end
  for index, entry in ipairs(fetch('HMGET', K.blocks, page)) do
    if looks <= 0 then
      break
    end
    block = page[index]
    local is_promising, jobs = look_at_block(block, entry)
    looks = looks - 1
    if is_promising then
      local low, high = block * BLOCK_JOBS, (block + 1) * BLOCK_JOBS - 1
      local start = is_ascending and math.max(low, from) or math.min(high, from)
      local bound = is_ascending and math.min(high, to) or math.max(low, to)
      local is_dense = jobs and jobs * 2 >= (bound - start) * step
      local handles = (is_dense and made or asked)(start, bound)
      looks = looks - #handles
      local stopped_at = look_at_rows(handles)
      if stopped_at then
        return { jobs_reply(found, rows), string.format('%d', tonumber(stopped_at)), looked_at }
      end
    end
    block = block + step
  end
end
local is_over = (last_block - block) * step < 0
local reached = is_ascending and block * BLOCK_JOBS - 1 or (block + 1) * BLOCK_JOBS
return { jobs_reply(found, rows), is_over and '' or string.format('%d', reached), looked_at }
