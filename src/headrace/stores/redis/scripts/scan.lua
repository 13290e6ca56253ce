-- scan: whole, in order of seq, the jobs that match every filter; a part of all jobs per call.
--
-- uses     rows writes lanes matching reply blocks
-- keys     rows bodies more leases lanes jobs blocks sequences counts failures
-- args     1  the filter, as in matching
--          2  what a row must have to be looked at closely: { numbers of lanes or false, letters of states
--             or false, texts that stand in the row, assignee or false }
--          3  'a' in ascending order, 'd' in descending   4  after this seq, or ''
--          5  at most so many jobs   6  stop when the bodies found come to so many bytes
--          7  look at so many rows, and as many blocks
-- returns  { jobs as in reply, the last seq that was looked at or '' if there is no more, how many rows
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
