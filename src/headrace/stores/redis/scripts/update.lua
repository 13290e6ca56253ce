-- update: write what an update says of jobs that are still as they were read.
--
-- uses     rows writes blocks lanes numbering lines lineup places log holding bodies
-- keys     jobs rows bodies leases expiry blocked blocks counts failures lanes lane_ids sequences keys events root
-- derived  {root}:tag:<tag>, see insert, and those of lines and places (same hash tag as the root)
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
    leave(before, handle)
    enter(after, handle, packed, redis.call('ZSCORE', K.leases, handle) or '+inf')
    retag(handle, before.tags, after.tags)
    hset(K.rows, handle, packed)
    hset(K.bodies, handle, with_rest(redis.call('HGET', K.bodies, handle), ARGV[first + 7]))
  end
end
write_blocks(false)
write_all()
write_lists()
return answers
