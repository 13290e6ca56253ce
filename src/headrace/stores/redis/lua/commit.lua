-- script: commit
-- Write changes whose jobs are still as they were read.
--
-- uses     rows writes blocks lanes indexes log edges holders
-- keys     jobs rows more leases expiry blocked blocks counts failures lanes sequences keys edges unseen
--          events root
-- derived  those of indexes and edges
-- args     1            { together, leases as read, seen edges { { parent, child } }, the names of the lanes in
--                       which the jobs were read, the workers that held them }
--          2            per change: lease_until as read; where it stands afterwards (see indexes); what to do with
--                       the result and with the failure (0 leave, 1 write, 2 remove); as read: the place of the
--                       lane and of the worker, version, state, attempt, failures, losses; afterwards: state,
--                       failures, 1 if another worker holds it
--          then         the ids; the tokens as read
--          then         per change: the row; the event; the result and the failure, where it is written
-- returns  { per change '1' written or '0' left alone, in one text; touched edges, flat: parent,
--          child, kind, outcome, seen }
-- errors   none of its own
--
-- Progress, note, checkpoint and log stay as stored, and so does the lease_until of a job that is leased
-- before and after: heartbeats and notes write those without a new version.

local together, leases_as_read, seen, lanes, holders = unpack(cmsgpack.unpack(ARGV[1]))
local SPEC = '>i8i8BBI4I4I4c1I4I4I4c1I4B'
local SPEC_BYTES = struct.size(SPEC)
local WRITE, REMOVE = 1, 2

local specs = ARGV[2]
local count = #specs / SPEC_BYTES

local function spec_of(index)
  return struct.unpack(SPEC, specs, (index - 1) * SPEC_BYTES + 1)
end

local ids, handles, stored = stored_jobs(3, count)
local leases = leases_as_read and fetch('ZMSCORE', K.leases, handles)

-- { lane, flags, last event, tags, scope } of the stored job, if it is as it was read.
local function as_read(index)
  local packed = stored[index]
  if not packed then
    return nil
  end
  local lease_until, _, _, _, lane, holder, version, state, attempt, failures, losses = spec_of(index)
  local stored_lane, flags, event, full, stored_state, stored_version, stored_attempt, stored_failures,
    stored_losses, _, _, _, _, tags, scope, rest = struct.unpack(HEAD, packed)
  local token, worker = '', ''
  if full == 1 then
    _, _, _, _, _, token, worker = struct.unpack(REST, packed, rest)
  end
  if stored_version ~= version or stored_state ~= state or stored_attempt ~= attempt
    or stored_failures ~= failures or stored_losses ~= losses
    or token ~= ARGV[2 + count + index] or worker ~= holders[holder] or lane_text(stored_lane) ~= lanes[lane]
  then
    return nil
  end
  if leases_as_read then
    local present = leases[index] and tonumber(leases[index]) or math.huge
    if present ~= (lease_until == NONE and math.huge or lease_until) then
      return nil
    end
  end
  return { stored_lane, flags, event, tags, scope }
end

local found, writes = {}, 0
for index = 1, count do
  found[index] = as_read(index) or false
  writes = writes + (found[index] and 1 or 0)
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
local argument = 3 + count * 2
reserve_events(writes)
for index = 1, count do
  local before, handle, id = found[index], handles[index], ids[index]
  local _, position, result, failure, _, _, _, state, _, failures, _, state_after, failures_after, is_handed_over =
    spec_of(index)
  local row, event = ARGV[argument], ARGV[argument + 1]
  local result_at = argument + 2
  local failure_at = result_at + (result == WRITE and 1 or 0)
  argument = failure_at + (failure == WRITE and 1 or 0)
  if not before then
    answers[index], left[id] = '0', true
  else
    answers[index] = '1'
    local lane, flags, tags = before[1], before[2], before[4]
    flags = write_more(handle, 'r', result, ARGV[result_at], flags)
    flags = write_more(handle, 'f', failure, ARGV[failure_at], flags)
    local packed = front(lane, flags, log_event(lane, before[3], event)) .. row
    if is_handed_over == 1 then
      note_worker(tonumber(handle), read_rest(read_row(packed), packed).assignee)
    end
    if LEASED[state] and LEASED[state_after] then
      position = redis.call('ZSCORE', K.leases, handle) or NONE
    end
    leave(lane, state, handle, failures, tags)
    enter(lane, state_after, handle, failures_after, tags, position)
    hset(K.rows, handle, packed)
    if TERMINAL[state_after] then
      zrem(K.expiry, handle)
      ended[#ended + 1] = { id, state_after, before[5] }
    end
  end
end
write_blocks(false)
write_all()
write_lists()
local any_edges = redis.call('EXISTS', K.edges) == 1
for _, one in ipairs(ended) do
  local id, outcome, scope = one[1], one[2], one[3]
  if scope ~= '' then
    release_key(scope, id, false)
  end
  if any_edges then
    settle_edges(id, outcome, touched)
  end
end
for _, pair in ipairs(seen) do
  if not left[pair[2]] then -- otherwise the child has not been judged
    see_edge(pair[1], pair[2])
  end
end
return { table.concat(answers), touched }
