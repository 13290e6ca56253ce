-- leasing: the one transition that the store makes by itself.
--
-- keys     rows bodies blocks
--
-- What is written equals `lifecycle.apply(job, Claim(...), now)`, field by field and event included:
-- picking and leasing must be one step, so the rule is repeated here, and a test compares the two.

local WRITTEN = HEAD .. string.sub(REST, 2)
local FULL = 1
local STEP_US = 5000000 -- clock.STEP_SECONDS

local function lease_job(row, packed, handle, id)
  local at = math.max(now, row.updated_at) -- a job's own time never runs back
  local from = at - now <= STEP_US and at or now -- but no lease counts from a clock that was set back since
  local started_at, last_failed_at, finalized_at = at, NONE, NONE
  read_rest(row, packed)
  if row.full == FULL then
    started_at = row.started_at == NONE and at or row.started_at
    last_failed_at, finalized_at = row.last_failed_at, row.finalized_at
  end
  local version, attempt = row.version + 1, row.attempt + 1
  local token = string.format('%d.%s', attempt, nonce)
  local scheduled_at = math.min(math.max(row.run_at, row.updated_at), at) -- it may be claimed ahead of its time
  local length = lease_us or (row.lease_us ~= NONE and row.lease_us)
  local lease_until = length and from + length
  local event = log_event(row.lane, row.event, cmsgpack.pack({
    at, id, 'l', row.state, 'r', version, attempt, row.failures, row.losses, row.run_at, worker,
    lease_until, at - scheduled_at,
  }))
  local written = struct.pack(WRITTEN, row.lane, row.flags, event, FULL, 'r', version, attempt,
    row.failures, row.losses, row.run_at, at, row.created_at, row.lease_us, #row.tags, row.tags,
    #row.scope, row.scope, at, scheduled_at, started_at, last_failed_at, finalized_at, #token, token,
    #worker, worker) .. packed_limit(row, packed)
  hset(K.rows, handle, written)
  leave(row, handle)
  row.state, row.line = 'r', line_of(row.lane, 'r')
  local lease = lease_until and string.format('%d', lease_until) or 'inf'
  enter(row, handle, packed, lease)
  return written, lease
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
    local id = struct.unpack(NAMES, bodies[index])
    rows[index], leases[index] = lease_job(read_row(packed), packed, handles[index], id)
    note_worker(tonumber(handles[index]), worker)
  end
  write_blocks(false)
  write_all()
  write_lists()
  return jobs_reply(handles, rows, bodies, leases)
end
