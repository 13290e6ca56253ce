-- scan: whole, in order of seq, the jobs that match every filter; a part of all jobs per call.
--
-- uses     rows lanes matching reply
-- keys     rows bodies more leases lanes jobs
-- args     1  the filter, as in matching
--          2  what a row must have to be looked at closely: { numbers of lanes or false, letters of states
--             or false, texts that stand in the row }
--          3  'a' in ascending order, 'd' in descending   4  after this seq, or ''
--          5  at most so many jobs   6  stop when the bodies found come to so many bytes
--          7  look at so many rows
-- returns  { jobs as in reply, the last seq that was looked at or '' if there is no more }
-- errors   none of its own
--
-- Most seqs have a job, so that handles are made rather than asked for; where that finds few, the next
-- ones are asked for.

local BLOCK = 1000
local STATE_AT = 15

local filter = cmsgpack.unpack(ARGV[1])
local lanes, states, texts = unpack(cmsgpack.unpack(ARGV[2]))
local ascending, after = ARGV[3] == 'a', tonumber(ARGV[4])
local limit, bytes_left, looks = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
if lanes then
  local heads = {}
  for _, lane in ipairs(lanes) do
    heads[struct.pack('>I4', lane)] = true
  end
  lanes = heads
end
states = set_of(states)

local function end_of(rank)
  local entry = redis.call('ZRANGE', K.jobs, rank, rank, 'WITHSCORES')
  return tonumber(entry[2])
end

local first, last = end_of(0), end_of(-1)
if not first then
  return { { {}, {}, {} }, '' }
end
local step = ascending and 1 or -1
local from, to = ascending and first or last, ascending and last or first
if after then
  from = ascending and math.max(first, after + 1) or math.min(last, after - 1)
end

local thousandths = {}
for number = 0, 999 do
  thousandths[number] = string.format('%03d', number)
end

-- The handles up to the next thousand, and where those after them begin. As handle_of makes them, but quicker.
local function made(start)
  local thousand = math.floor(start / 1000)
  local head, edge = string.format('%011d', thousand), thousand * 1000
  local bound = ascending and math.min(edge + 999, to) or math.max(edge, to)
  local handles = {}
  for seq = start, bound, step do
    handles[#handles + 1] = head .. thousandths[seq - edge]
  end
  return handles, bound + step
end

local function asked(start)
  local command, bound = ascending and 'ZRANGEBYSCORE' or 'ZREVRANGEBYSCORE', ascending and '+inf' or '-inf'
  local flat = redis.call(command, K.jobs, string.format('%d', start), bound, 'WITHSCORES', 'LIMIT', 0, BLOCK)
  local handles = {}
  for index = 2, #flat, 2 do
    handles[index / 2] = handle_of(tonumber(flat[index]))
  end
  return handles, #handles == BLOCK and tonumber(handles[BLOCK]) + step or to + step
end

local function has_texts(packed)
  for _, text in ipairs(texts) do
    if not string.find(packed, text, 1, true) then
      return false
    end
  end
  return true
end

local found, rows = {}, {}
local is_dense = true
while (to - from) * step >= 0 and looks > 0 do
  local handles, following = (is_dense and made or asked)(from)
  local hits = 0
  for index, packed in ipairs(fetch('HMGET', K.rows, handles)) do
    if packed then
      hits = hits + 1
      if (not lanes or lanes[string.sub(packed, 1, 4)])
        and (not states or states[string.sub(packed, STATE_AT, STATE_AT)])
        and has_texts(packed) and matches(filter, packed) then
        found[#found + 1], rows[#rows + 1] = handles[index], packed
        bytes_left = bytes_left - redis.call('HSTRLEN', K.bodies, handles[index])
        if #found >= limit or bytes_left <= 0 then
          return { jobs_reply(found, rows), string.format('%d', tonumber(handles[index])) }
        end
      end
    end
  end
  is_dense = hits * 2 >= #handles
  looks = looks - #handles
  from = following
end
local is_over = (to - from) * step < 0
return { jobs_reply(found, rows), is_over and '' or string.format('%d', from - step) }
