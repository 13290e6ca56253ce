-- script: insert
-- Store new jobs with their events, edges and keys, or nothing.
--
-- uses     rows writes blocks lanes lane_numbers ready_set indexes log edges holders
-- keys     jobs rows bodies more leases expiry blocked blocks counts failures lanes lane_ids sequences keys
--          edges unseen events gone root
-- derived  {root}:tag:<tag>            zset  jobs that have the tag, by seq
--          {root}:spawned:<parent id>  zset  jobs that the parent spawned, by seq
--          (same hash tag as the root) and those of indexes and edges
-- args     1            { now, number of jobs, number of runs, lanes (names as JSON), fence { id, token } or
--                         false, parents { { id, outcome or false } }, holds { { scope, id, expires_at or
--                         false, released when terminal } }, more { { index, letter, value } },
--                         kin { { id, version, the most edges into it, who may wait for it by
--                         FAN_IN, what it may have spawned: each false for what does not matter } } }
--          2 … n + 1    the ids
--          then         per run of jobs that are alike in all but id, payload and event: how many, the lane's
--                       place in the list, state, failures, where they stand (see indexes), expires_at, and what
--                       they have of these: 1 tags, 2 a job that spawned them, 4 a worker; and the row
--          then         per job: body; event
--          then         edges, up to some hundred per argument: { { parent, child, kind, outcome or
--                         false, seen } }
-- returns  { 'ok', the first seq }, or the first kind of clash, in this order, with nothing stored:
--          { 'fence' }, { 'parents', ids }, { 'kin', ids }, { 'ids', ids }, { 'keys', places in the list of holds }
-- errors   none of its own

local now, count, runs, lane_list, fence, parents, holds, more, kin = unpack(cmsgpack.unpack(ARGV[1]))
local SPEC = '>I4I4c1I4i8i8B'
local HAS_TAGS, IS_SPAWNED, HAS_WORKER = 1, 2, 4

local function moved_parents()
  local moved = {}
  for _, parent in ipairs(parents) do
    local packed = packed_row_of(parent[1])
    local state = packed and read_row(packed).state
    local outcome = state and TERMINAL[state] and state
    if not packed or (outcome or false) ~= parent[2] then
      moved[#moved + 1] = parent[1]
    end
  end
  return moved
end

local function is_joined_by_others(id, known)
  local among = set_of(known)
  for _, child in ipairs(redis.call('ZRANGE', from_key(id), 0, -1)) do
    if not among[child] and read_edge(id, child)[1] == 'fan_in' then
      return true
    end
  end
  return false
end

-- Who spawned a job stands in its body, and what a job has spawned in a list of handles.
local function has_spawned_others(id, known)
  local among = {}
  for _, child in ipairs(known) do
    local seq = redis.call('ZSCORE', K.jobs, child)
    if seq then
      among[handle_of(tonumber(seq))] = true
    end
  end
  for _, handle in ipairs(redis.call('ZRANGE', K.root .. ':spawned:' .. id, 0, -1)) do
    if not among[handle] then
      return true
    end
  end
  return false
end

local function grown_kin()
  local grown = {}
  for _, one in ipairs(kin) do
    local id, version, parents_max, joins, spawned = unpack(one)
    local packed = version and packed_row_of(id)
    if (version and not (packed and read_row(packed).version == version))
      or (parents_max and redis.call('ZCARD', into_key(id)) > parents_max)
      or (joins and is_joined_by_others(id, joins))
      or (spawned and has_spawned_others(id, spawned)) then
      grown[#grown + 1] = id
    end
  end
  return grown
end

local function stored_ids()
  local stored = {}
  for first = 2, count + 1, CHUNK do
    local last = math.min(first + CHUNK - 1, count + 1)
    for index, seq in ipairs(redis.call('ZMSCORE', K.jobs, unpack(ARGV, first, last))) do
      if seq then
        stored[#stored + 1] = ARGV[first + index - 1]
      end
    end
  end
  return stored
end

local function held_keys()
  local scopes, held = {}, {}
  for index, hold in ipairs(holds) do
    scopes[index] = hold[1]
  end
  for index, packed in ipairs(fetch('HMGET', K.keys, scopes)) do
    local expires_at = packed and cmsgpack.unpack(packed)[2]
    if packed and (not expires_at or expires_at > now) then
      held[#held + 1] = index
    end
  end
  return held
end

if fence and not held_by(fence[1], fence[2], now) then
  return { 'fence' }
end
for _, clash in ipairs({
  { 'parents', moved_parents() }, { 'kin', grown_kin() }, { 'ids', stored_ids() }, { 'keys', held_keys() },
}) do
  if #clash[2] > 0 then
    return clash
  end
end

-- From here on it is written.

-- An id that was used before, by a job since deleted, goes on with the history of that job.
local function last_event_of_gone(id)
  local event = redis.call('ZSCORE', K.gone, id)
  if event then
    redis.call('ZREM', K.gone, id)
  end
  return event and tonumber(event) or 0
end

local flags = {}
local first_seq = redis.call('HINCRBY', K.sequences, 'jobs', count) - count + 1
for _, one in ipairs(more) do
  local index, letter, value = unpack(one)
  flags[index] = (flags[index] or 0) + MORE[letter]
  hset(K.more, handle_of(first_seq + index) .. letter, value)
end

local lanes = number_lanes(lane_list)
local reuse = redis.call('EXISTS', K.gone) == 1
local seq, argument = first_seq, count + 2 + runs * 2
reserve_events(count)
for run = count + 2, argument - 1, 2 do
  local jobs, place, state, failures, position, expires_at, has = struct.unpack(SPEC, ARGV[run])
  local row, lane, tags = ARGV[run + 1], lanes[place], ''
  if bit.band(has, HAS_TAGS) > 0 then
    tags = struct.unpack('>I4c0', row, TAGS_AT)
  end
  for _ = 1, jobs do
    local index, handle = seq - first_seq, handle_of(seq)
    local id, body, bits = ARGV[index + 2], ARGV[argument], flags[index] or 0
    if bit.band(has, IS_SPAWNED) > 0 then
      local _, parent = struct.unpack(NAMES, body)
      bits = bits + SPAWNED
      zadd(K.root .. ':spawned:' .. parent, seq, handle)
    end
    local event = log_event(lane, reuse and last_event_of_gone(id) or 0, ARGV[argument + 1])
    local packed = front(lane, bits, event) .. row
    if bit.band(has, HAS_WORKER) > 0 then
      note_worker(seq, read_rest(read_row(packed), packed).assignee)
    end
    for tag in each_tag(tags) do
      zadd(K.root .. ':tag:' .. tag, seq, handle)
    end
    note_lane(seq, lane)
    enter(lane, state, handle, failures, tags, position)
    zadd(K.jobs, seq, id)
    hset(K.rows, handle, packed)
    hset(K.bodies, handle, body)
    if expires_at ~= NONE and not TERMINAL[state] then
      zadd(K.expiry, expires_at, handle)
    end
    seq, argument = seq + 1, argument + 2
  end
end
note_counts(first_seq, count)
for _, hold in ipairs(holds) do
  hset(K.keys, hold[1], cmsgpack.pack({ hold[2], hold[3], hold[4] }))
end
write_blocks(true)
write_all()
write_lists()
for edges = argument, #ARGV do
  for _, edge in ipairs(cmsgpack.unpack(ARGV[edges])) do
    add_edge(unpack(edge))
  end
end
return { 'ok', first_seq }
