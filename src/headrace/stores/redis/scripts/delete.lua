-- delete: remove jobs with their keys and the edges into them, all or none. Events stay.
--
-- uses     rows writes blocks lanes lines lineup places edges holding start
-- keys     jobs rows bodies more leases expiry blocked blocks counts failures lanes sequences keys edges
--          unseen events gone root
-- derived  {root}:tag:<tag>, {root}:spawned:<parent id> and those of lines, places and edges
-- args     1            number of jobs
--          2 … n + 1    the ids
--          then         per job: its version as read
-- returns  1 deleted (ids that are gone already do not count), 0 one has moved on: nothing was deleted
-- errors   none of its own

local count = tonumber(ARGV[1])
local ids, handles = {}, {}
for index = 1, count do
  ids[index] = ARGV[index + 1]
end
for index, seq in ipairs(fetch('ZMSCORE', K.jobs, ids)) do
  handles[index] = seq and handle_of(tonumber(seq)) or ''
end
local rows = fetch('HMGET', K.rows, handles)
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
    leave(row, handle)
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
