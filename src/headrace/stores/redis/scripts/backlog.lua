-- backlog: how many jobs have not started yet, and the bytes of their payloads.
--
-- uses     rows lanes lines bodies
-- keys     rows bodies blocked lanes root
-- derived  those of lines
-- args     1  only of this tenant, or ''   2  only of this queue, or ''
--          3  where to go on: what the call before returned, or ''
-- returns  { jobs, bytes, where to go on or false }
-- errors   none of its own
--
-- A payload's length is known only from the body, so a call reads a bounded number of those.

local JOBS_MAX = 5000
local BYTES_MAX = 64 * 1024 * 1024
local PAGE = 500

local tenant, queue = ARGV[1] ~= '' and ARGV[1], ARGV[2] ~= '' and ARGV[2]

-- { key, from this rank on }
local function lists()
  local found = { { K.blocked, 0 } }
  for priority = 0, PRIORITY_LAST do
    local queues = queue and { queue } or redis.call('ZRANGE', queues_key(priority, tenant), 0, -1)
    for _, one in ipairs(queues) do
      for _, member in ipairs(redis.call('ZRANGE', lines_key(priority, tenant, one), 0, -1)) do
        found[#found + 1] = { line_key(line_listed(member)), 0 }
      end
    end
  end
  return found
end

-- Lines are those of the tenant and queue already, blocked jobs are all in one place.
local function is_wanted(key, handle)
  if key ~= K.blocked or not (tenant or queue) then
    return true
  end
  local names = lane_names((struct.unpack(FRONT, redis.call('HGET', K.rows, handle))))
  return (not tenant or names[1] == tenant) and (not queue or names[2] == queue)
end

local looked_at, jobs, bytes, rest = 0, 0, 0, {}

local function is_enough()
  return looked_at >= JOBS_MAX or bytes >= BYTES_MAX
end

-- Add up the list as far as the call may go; the rank to go on from, or nil at its end.
local function add_up(key, rank)
  if is_enough() then
    return rank
  end
  repeat
    local page = redis.call('ZRANGE', key, rank, rank + PAGE - 1)
    for _, handle in ipairs(page) do
      if is_enough() then
        return rank
      end
      if is_wanted(key, handle) then
        local _, _, length = payload_of(redis.call('HGET', K.bodies, handle))
        jobs, bytes = jobs + 1, bytes + length
      end
      looked_at, rank = looked_at + 1, rank + 1
    end
  until #page < PAGE
end

for _, list in ipairs(ARGV[3] == '' and lists() or cmsgpack.unpack(ARGV[3])) do
  local rank = add_up(list[1], list[2])
  if rank then
    rest[#rest + 1] = { list[1], rank }
  end
end
return { jobs, bytes, #rest > 0 and cmsgpack.pack(rest) }
