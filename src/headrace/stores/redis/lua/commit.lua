-- script: commit
-- Write changes whose jobs are still as they were read.
--
-- uses     rows writes blocks lanes indexes log edges holders
-- keys     jobs rows more leases expiry blocked blocks counts failures lanes sequences keys edges unseen
--          events root
-- derived  those of indexes and edges
-- args     1            { number of changes, together, leases as read, seen edges { { parent, child } },
--                       the names of the lanes in which the jobs were read }
--          2 … n + 1    the ids
--          then         per change: lease_until as read and after, what to do with the result and with
--                       the failure (0 leave, 1 write, 2 remove), as read: the place of the lane, version,
--                       state, attempt, failures, losses, token and assignee; and the row; the event; the
--                       result; the failure
-- returns  { per change '1' written or '0' left alone, in one text; touched edges, flat: parent,
--          child, kind, outcome, seen }
-- errors   none of its own
--
-- Progress, note, checkpoint and log stay as stored, and so does the lease_until of a job that is leased
-- before and after: heartbeats and notes write those without a new version.

local count, together, leases_as_read, seen, lanes = unpack(cmsgpack.unpack(ARGV[1]))
local SPEC = '>i8i8BBI4I4c1I4I4I4I4c0'
local WRITE, REMOVE = 1, 2

local ids, handles = {}, {}
for index = 1, count do
  ids[index] = ARGV[index + 1]
end
for index, seq in ipairs(fetch('ZMSCORE', K.jobs, ids)) do
  handles[index] = seq and handle_of(tonumber(seq)) or ''
end
local stored = fetch('HMGET', K.rows, handles)
local leases = leases_as_read and fetch('ZMSCORE', K.leases, handles)

local function argument_of(index)
  return count + 2 + (index - 1) * 4
end

local function is_as_read(index)
  local packed = stored[index]
  if not packed then
    return false
  end
  local lease, _, _, _, lane, version, state, attempt, failures, losses, holder =
    struct.unpack(SPEC, ARGV[argument_of(index)])
  local row = read_rest(read_row(packed), packed)
  stored[index] = row
  if row.version ~= version or row.state ~= state or row.attempt ~= attempt
    or row.failures ~= failures or row.losses ~= losses
    or row.token .. '\n' .. row.assignee ~= holder or lane_text(row.lane) ~= lanes[lane]
  then
    return false
  end
  if leases_as_read then
    local present = leases[index] and tonumber(leases[index]) or math.huge
    return present == (lease == NONE and math.huge or lease)
  end
  return true
end

local applied, writes = {}, 0
for index = 1, count do
  applied[index] = is_as_read(index)
  writes = writes + (applied[index] and 1 or 0)
end
if together and writes < count then
  return { string.rep('0', count), {} }
end

-- From here on it is written.

local function write_more(handle, letter, action, value, flags)
  if action == WRITE then
    hset(K.more, handle .. letter, value)
    return bit.bor(flags, MORE[letter])
  elseif action == REMOVE then
    hdel(K.more, handle .. letter)
    return bit.band(flags, bit.bnot(MORE[letter]))
  end
  return flags
end

local touched, answers, ended, left = {}, {}, {}, {}
reserve_events(writes)
for index = 1, count do
  answers[index] = applied[index] and '1' or '0'
  if not applied[index] then
    left[ids[index]] = true
  else
    local first, handle, before = argument_of(index), handles[index], stored[index]
    local _, lease, result, failure, _, _, _, _, _, _, _, at = struct.unpack(SPEC, ARGV[first])
    local flags = write_more(handle, 'r', result, ARGV[first + 2], before.flags)
    flags = write_more(handle, 'f', failure, ARGV[first + 3], flags)
    local event = log_event(before.lane, before.event, ARGV[first + 1])
    local packed = front(before.lane, flags, event) .. string.sub(ARGV[first], at)
    local after = read_rest(read_row(packed), packed)
    if after.assignee ~= '' and after.assignee ~= before.assignee then
      note_worker(tonumber(handle), after.assignee)
    end
    if LEASED[before.state] and LEASED[after.state] then
      lease = redis.call('ZSCORE', K.leases, handle) or '+inf'
    elseif lease == NONE then
      lease = '+inf'
    end
    leave(before, handle)
    enter(after, handle, packed, lease)
    hset(K.rows, handle, packed)
    if TERMINAL[after.state] then
      zrem(K.expiry, handle)
      ended[#ended + 1] = { ids[index], after }
    end
  end
end
write_blocks(false)
write_all()
write_lists()
local any_edges = redis.call('EXISTS', K.edges) == 1
for _, one in ipairs(ended) do
  local id, row = one[1], one[2]
  if row.scope ~= '' then
    release_key(row.scope, id, false)
  end
  if any_edges then
    settle_edges(id, row.state, touched)
  end
end
for _, pair in ipairs(seen) do
  if not left[pair[2]] then -- otherwise the child has not been judged
    see_edge(pair[1], pair[2])
  end
end
return { table.concat(answers), touched }
