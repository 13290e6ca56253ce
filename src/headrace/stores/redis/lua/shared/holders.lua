-- holders: jobs by their ids; who holds a lease, and who holds an idempotency key.
--
-- uses     rows
-- keys     jobs rows leases expiry keys
--
-- `keys` maps a scope to { job id, expires_at or false, released when terminal } packed.

local function packed_row_of(id)
  local seq = redis.call('ZSCORE', K.jobs, id)
  if not seq then
    return nil
  end
  local handle = handle_of(tonumber(seq))
  return redis.call('HGET', K.rows, handle), handle
end

-- Of the ids from this argument on: ids, handles and rows; '' and false where there is no such job.
local function stored_jobs(first, count)
  local ids, handles = {}, {}
  for index = 1, count do
    ids[index] = ARGV[first + index - 1]
  end
  for index, seq in ipairs(fetch('ZMSCORE', K.jobs, ids)) do
    handles[index] = seq and handle_of(tonumber(seq)) or ''
  end
  return ids, handles, fetch('HMGET', K.rows, handles)
end

-- The row and handle of the job if the token holds its lease at `now`; nil otherwise. A lease ends with
-- the job's lifetime and with the attempt's execution timeout at the latest: see lifecycle.lease_holds.
local function held_by(id, token, now)
  local packed, handle = packed_row_of(id)
  if not packed then
    return nil
  end
  local row = read_rest(read_row(packed), packed)
  if row.token ~= token or token == '' then
    return nil
  end
  for _, ending in ipairs({ K.leases, K.expiry }) do
    local ends = redis.call('ZSCORE', ending, handle)
    if ends and tonumber(ends) <= now then
      return nil
    end
  end
  local times_out = times_out_at(row, packed)
  if times_out and times_out < now then
    return nil
  end
  return row, handle, packed
end

-- Give up the key of a job that ends, or (`always`) that is deleted, if the job still holds it.
local function release_key(scope, id, always)
  local packed = redis.call('HGET', K.keys, scope)
  if packed then
    local hold = cmsgpack.unpack(packed)
    if hold[1] == id and (always or hold[3]) then
      redis.call('HDEL', K.keys, scope)
    end
  end
end
