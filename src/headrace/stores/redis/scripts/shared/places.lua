-- places: where a job is listed, by its state.
--
-- keys     root leases blocked
-- derived  {root}:finished:<state>  zset  ended jobs by finalized_at (same hash tag as the root)

local function finished_key(state)
  return K.root .. ':finished:' .. state
end

-- List the job. `lease`: its lease_until, '+inf' without end; only looked at while it is leased.
local function enter(row, handle, packed, lease)
  local state = row.state
  move(row, 1)
  if CLAIMABLE[state] then
    line_up(row, handle)
  elseif LEASED[state] then
    zadd(K.leases, lease, handle)
  elseif TERMINAL[state] then
    local finalized_at = row.finalized_at or read_rest(row, packed).finalized_at
    zadd(finished_key(state), finalized_at, handle)
  else
    zadd(K.blocked, tonumber(handle), handle)
  end
end

local function leave(row, handle)
  local state = row.state
  move(row, -1)
  if CLAIMABLE[state] then
    step_out(row, handle)
  elseif LEASED[state] then
    zrem(K.leases, handle)
  elseif TERMINAL[state] then
    zrem(finished_key(state), handle)
  else
    zrem(K.blocked, handle)
  end
end
