-- lease: which jobs a claim takes, in order, and the one transition that the store makes by itself.
--
-- uses     rows writes blocks ready_set indexes log jobs_reply request cursor
-- keys     rows bodies
--
-- What is written equals `lifecycle.apply(job, Claim(...), now)`, field by field and event included:
-- picking and leasing must be one step, so the rule is repeated here, and a test compares the two.

-- The jobs picked so far and the line of each; a heap of cursors along lines, and along lists of lines,
-- whose next line is opened when its turn comes; and { score, handle } where the lookups of one call were
-- used up. Nothing is written yet.
local function new_pick()
  return { handles = {}, lines = {}, heap = {}, stopped_at = false }
end

-- Have the line's jobs taken, from the position on.
local function open(pick, line, after)
  local cursor = cursor_of(line, after)
  if cursor then
    push(pick.heap, cursor)
    if #tags == 0 then
      know_first(line, cursor.page[1], cursor.page[2])
    end
  end
end

-- Have the jobs of the queue taken, line by line.
local function open_queue(pick, priority, queue)
  local cursor = not is_passed_over(queue, tenant) and cursor_along(lines_key(priority, tenant, queue), 0, PAGE)
  if cursor then
    push(pick.heap, cursor)
  end
end

-- Move what is first in the heap on.
local function step(heap)
  if advance(heap[1]) then
    sift_down(heap)
  else
    pop(heap)
  end
end

local function add(pick, handle, line)
  local size = #pick.handles + 1
  pick.handles[size], pick.lines[size] = handle, line
end

-- The usual case, one line left: the rest of the page, then what else is due, without looking at each.
local function take_run(pick, cursor, wanted)
  repeat
    add(pick, cursor.member, cursor.line)
    if #pick.handles == wanted then
      return
    end
  until cursor.at > #cursor.page or not advance(cursor)
  if cursor.at > #cursor.page and not cursor.done then
    local run = redis.call('ZRANGEBYSCORE', cursor.key, '-inf', horizon, 'LIMIT', cursor.rank, wanted - #pick.handles)
    for _, handle in ipairs(run) do
      add(pick, handle, cursor.line)
    end
  end
end

-- Take from what is open until `wanted` are taken, opening the queues of a list as their turn comes.
local function take(pick, wanted, priority, list)
  local heap = pick.heap
  while #pick.handles < wanted do
    while list and (not heap[1] or list.score <= heap[1].score) do
      open_queue(pick, priority, list.member)
      list = advance(list) and list
    end
    local cursor = heap[1]
    if not cursor then
      return
    end
    if not cursor.line then
      local line = line_listed(cursor.member)
      step(heap)
      if is_wanted(line, true) then
        open(pick, line)
      end
    elseif not list and not heap[2] and #cursor.others == 0 then
      return take_run(pick, cursor, wanted)
    else
      if has_other_tags(cursor) then
        add(pick, cursor.member, cursor.line)
      end
      if is_used_up() then
        pick.stopped_at = { cursor.score, cursor.member }
        return
      end
      step(heap)
    end
  end
end

local WRITTEN = HEAD .. string.sub(REST, 2)
local FULL = 1
local NAME = string.sub(NAMES, 1, 4)
local STEP_US = 5000000 -- clock.STEP_SECONDS

local exact_texts = {}

-- The time as text with all its digits; the jobs of a claim mostly share it.
local function exact(time)
  local text = exact_texts[time]
  if not text then
    text = string.format('%d', time)
    exact_texts[time] = text
  end
  return text
end

-- Write it. The row as leased, and the end of the lease for the reply.
local function lease_job(packed, handle, id)
  local lane, flags, event, full, state, version, attempt, failures, losses, run_at, updated_at, created_at,
    lease_length, tags, scope, limit = struct.unpack(HEAD, packed)
  local started_at, last_failed_at, finalized_at, _ = NONE, NONE, NONE, nil
  if full == FULL then
    _, _, started_at, last_failed_at, finalized_at, _, _, limit = struct.unpack(REST, packed, limit)
  end
  local at = math.max(now, updated_at) -- a job's own time never runs back
  local from = at - now <= STEP_US and at or now -- but no lease counts from a clock that was set back since
  local scheduled_at = math.min(math.max(run_at, updated_at), at) -- it may be claimed ahead of its time
  local length = lease_us or (lease_length ~= NONE and lease_length)
  local lease_until = length and from + length
  version, attempt = version + 1, attempt + 1
  local token = attempt .. '.' .. nonce
  event = log_event(lane, event, cmsgpack.pack({
    at, id, 'l', state, 'r', version, attempt, failures, losses, run_at, worker, lease_until, at - scheduled_at,
  }))
  local written = struct.pack(WRITTEN, lane, flags, event, FULL, 'r', version, attempt, failures, losses,
    run_at, at, created_at, lease_length, #tags, tags, #scope, scope, at, scheduled_at,
    started_at == NONE and at or started_at, last_failed_at, finalized_at, #token, token, #worker, worker)
    .. string.sub(packed, limit)
  hset(K.rows, handle, written)
  leave(lane, state, handle, failures, tags)
  enter(lane, 'r', handle, failures, tags, lease_until or NONE)
  return written, lease_until and exact(lease_until) or 'inf'
end

-- Lease the jobs, which stand in these lines, and write everything. The reply for them; or nil and
-- what is wrong, with nothing written.
local function lease_jobs(handles, lines)
  if #handles == 0 then
    return { {}, {}, {} }
  end
  local rows, bodies = fetch('HMGET', K.rows, handles), fetch('HMGET', K.bodies, handles)
  for index, handle in ipairs(handles) do
    if not rows[index] or not bodies[index] then
      return nil, 'CORRUPT job ' .. handle .. ' waits in line ' .. lines[index] .. ' and is not stored'
    end
  end
  local leases = {}
  reserve_events(#handles)
  for index, packed in ipairs(rows) do
    rows[index], leases[index] = lease_job(packed, handles[index], (struct.unpack(NAME, bodies[index])))
    note_worker(tonumber(handles[index]), worker)
  end
  write_blocks(false)
  write_all()
  write_lists()
  return jobs_reply(handles, rows, bodies, leases)
end
