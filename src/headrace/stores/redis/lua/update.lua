-- script: update
-- Write what an update says of jobs that are still as they were read.
--
-- uses     rows writes blocks lanes lane_numbers ready_set indexes log holders
-- keys     jobs rows bodies leases expiry blocked blocks counts failures lanes lane_ids sequences keys events root
-- derived  {root}:tag:<tag>, see insert, and those of indexes (same hash tag as the root)
-- args     per job: id; as read: version, state, lane (names as JSON); lane, row, body behind the payload, event
-- returns  per job: 1 written, 0 left alone
-- errors   none of its own

local ARGUMENTS = 8

local count = #ARGV / ARGUMENTS
local answers, writes, done = {}, 0, {}
for index = 1, count do
  local first = (index - 1) * ARGUMENTS
  local id = ARGV[first + 1]
  local packed = not done[id] and packed_row_of(id)
  local row = packed and read_row(packed)
  local as_read = row and row.version == tonumber(ARGV[first + 2]) and row.state == ARGV[first + 3]
    and lane_text(row.lane) == ARGV[first + 4]
  done[id] = done[id] or as_read
  answers[index] = as_read and 1 or 0
  writes = writes + answers[index]
end

-- From here on it is written.

local function retag(handle, before, after)
  local kept = {}
  for tag in each_tag(after) do
    kept[tag] = true
    zadd(K.root .. ':tag:' .. tag, tonumber(handle), handle)
  end
  for tag in each_tag(before) do
    if not kept[tag] then
      zrem(K.root .. ':tag:' .. tag, handle)
    end
  end
end

reserve_events(writes)
for index = 1, count do
  if answers[index] == 1 then
    local first = (index - 1) * ARGUMENTS
    local stored, handle = packed_row_of(ARGV[first + 1])
    local before = read_row(stored)
    local lane = number_lanes({ ARGV[first + 5] })[1]
    local event = log_event(lane, before.event, ARGV[first + 8])
    local packed = front(lane, before.flags, event) .. ARGV[first + 6]
    local after = read_row(packed)
    note_lane(tonumber(handle), lane)
    local position = CLAIMABLE[after.state] and after.run_at or redis.call('ZSCORE', K.leases, handle) or NONE
    leave(before.lane, before.state, handle, before.failures, before.tags)
    enter(lane, after.state, handle, after.failures, after.tags, position)
    retag(handle, before.tags, after.tags)
    hset(K.rows, handle, packed)
    hset(K.bodies, handle, with_rest(redis.call('HGET', K.bodies, handle), ARGV[first + 7]))
  end
end
write_blocks(false)
write_all()
write_lists()
return answers

-- script: rewrite
-- Replace contents of jobs that are as they were read, and not leased.
--
-- uses     rows holders
-- keys     jobs rows bodies more leases expiry keys
-- args     per job: id, version as read, number of things given; then per thing its letter (b payload as
--          a body has it, r result, c checkpoint, l log, f message of the failure), its value
-- returns  per job: 1 written, 0 left alone
-- errors   none of its own

local function write(handle, row, packed, first, last)
  local flags = row.flags
  for argument = first, last, 2 do
    local letter, value = ARGV[argument], ARGV[argument + 1]
    if letter == 'b' then
      local body = redis.call('HGET', K.bodies, handle)
      redis.call('HSET', K.bodies, handle, with_payload(body, value))
    elseif letter == 'f' then
      local failure = redis.call('HGET', K.more, handle .. letter)
      if failure then
        failure = cjson.decode(failure)
        failure[1] = value
        redis.call('HSET', K.more, handle .. letter, cjson.encode(failure))
      end
    else
      flags = bit.bor(flags, MORE[letter])
      redis.call('HSET', K.more, handle .. letter, value)
    end
  end
  if flags ~= row.flags then
    redis.call('HSET', K.rows, handle, with_flags(row, packed, flags))
  end
end

local answers, argument = {}, 1
while argument <= #ARGV do
  local id, version, things = ARGV[argument], tonumber(ARGV[argument + 1]), tonumber(ARGV[argument + 2])
  local packed, handle = packed_row_of(id)
  local row = packed and read_row(packed)
  local as_read = row and row.version == version and not LEASED[row.state]
  local following = argument + 3 + 2 * things
  if as_read then
    write(handle, row, packed, argument + 3, following - 1)
  end
  answers[#answers + 1] = as_read and 1 or 0
  argument = following
end
return answers

-- script: delete
-- Remove jobs with their keys and the edges into them, all or none. Events stay.
--
-- uses     rows writes blocks ready_set indexes log edges holders
-- keys     jobs rows bodies more leases expiry blocked blocks counts failures lanes sequences keys edges
--          unseen events gone root
-- derived  {root}:tag:<tag>, {root}:spawned:<parent id> and those of indexes and edges
-- args     1            number of jobs
--          2 … n + 1    the ids
--          then         per job: its version as read
-- returns  1 deleted (ids that are gone already do not count), 0 one has moved on: nothing was deleted
-- errors   none of its own

local count = tonumber(ARGV[1])
local ids, handles, rows = stored_jobs(2, count)
for index = 1, count do
  if rows[index] then
    rows[index] = read_row(rows[index])
    if rows[index].version ~= tonumber(ARGV[count + 1 + index]) then
      return 0
    end
  end
end

-- From here on it is written.

local trimmed = trimmed_upto()
for index = 1, count do
  local id, handle, row = ids[index], handles[index], rows[index]
  if row then
    leave(row.lane, row.state, handle, row.failures, row.tags)
    note_count(tonumber(handle), -1)
    zrem(K.jobs, id)
    zrem(K.expiry, handle)
    hdel(K.rows, handle)
    hdel(K.bodies, handle)
    for tag in each_tag(row.tags) do
      zrem(K.root .. ':tag:' .. tag, handle)
    end
    if bit.band(row.flags, SPAWNED) > 0 then
      local _, parent = struct.unpack(NAMES, redis.call('HGET', K.bodies, handle))
      zrem(K.root .. ':spawned:' .. parent, handle)
    end
    for letter, flag in pairs(MORE) do
      if bit.band(row.flags, flag) > 0 then
        hdel(K.more, handle .. letter)
      end
    end
    -- The chain of the job's events starts at its row: keep the start, since the events stay.
    if row.event > trimmed then
      zadd(K.gone, row.event, id)
    end
    if row.scope ~= '' then
      release_key(row.scope, id, true)
    end
  end
end
write_blocks(false)
write_all()
write_lists()
if redis.call('EXISTS', K.edges) == 1 then
  for index = 1, count do
    if rows[index] then
      forget_child(ids[index])
    end
  end
end
return 1
