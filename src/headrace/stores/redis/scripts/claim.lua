-- claim: lease due jobs, in the order priority, run_at, seq.
--
-- uses     rows writes lanes lines places log heap reply
-- keys     rows bodies more leases blocked counts failures lanes counters events pauses root
-- derived  those of lines
-- args     1  { now, limit, worker, nonce, lease in µs or false, tenant or false, queues or false,
--              types or false, tags (may be empty), where to go on { priority, run_at, handle } or
--              false }
-- returns  { jobs as in reply, where to go on or false }: with more than one tag a call looks at a
--          bounded number of jobs; if it leased none by then it says where the next call goes on
-- errors   CORRUPT: a waiting job has no row; nothing was written
--
-- What is written equals `lifecycle.apply(job, Claim(...), now)`, field by field and event included:
-- picking and leasing must be one step, so the rule is repeated here, and a test compares the two.

local PROBES_MAX = 10000
local PRIORITY_LAST = 4
local LINES_PAGE = 50

local now, limit, worker, nonce, lease_us, tenant, queues, types, tags, resume = unpack(cmsgpack.unpack(ARGV[1]))
local wanted_types, wanted_queues = set_of(types), set_of(queues)
local paused = set_of(redis.call('HKEYS', K.pauses))
local any_paused = next(paused) ~= nil
local taken, lines_taken, probes, stopped_at = {}, {}, 0, false

-- --- which lines -------------------------------------------------------------------------------

local function lane_number(line)
  return tonumber(string.match(line, '^%d+'))
end

-- Tenant and queue are checked only where the lines do not come from a scope that implies them.
local function is_wanted(line, scoped)
  if scoped and not wanted_types and not any_paused then
    return true
  end
  local names = lane_names(lane_number(line))
  return (scoped or not tenant or names[1] == tenant)
    and (scoped or not wanted_queues or wanted_queues[names[2]])
    and (not wanted_types or wanted_types[names[3]])
    and not paused[names[2]]
    and not paused[names[2] .. '\n' .. names[1]]
end

local function feeds_of(priority)
  local feeds = {}
  if queues then
    for queue in pairs(wanted_queues) do
      feeds[#feeds + 1] = { key = heads_key(priority, tenant, queue), offset = 0, page = {}, at = 1 }
    end
  else
    feeds[1] = { key = heads_key(priority, tenant), offset = 0, page = {}, at = 1 }
  end
  return feeds
end

-- The run_at of the next line's first job, or nil when no more lines are due.
local function peek(feed)
  if feed.at > #feed.page and not feed.done then
    feed.page = redis.call('ZRANGEBYSCORE', feed.key, '-inf', now, 'WITHSCORES', 'LIMIT', feed.offset, LINES_PAGE)
    feed.offset = feed.offset + LINES_PAGE
    feed.at = 1
    feed.done = #feed.page < LINES_PAGE * 2
  end
  return feed.page[feed.at] and tonumber(feed.page[feed.at + 1])
end

local function next_feed(feeds)
  local first, first_score
  for _, feed in ipairs(feeds) do
    local score = peek(feed)
    if score and (not first or score < first_score) then
      first, first_score = feed, score
    end
  end
  return first, first_score
end

-- --- the jobs of a line ------------------------------------------------------------------------

-- Move the item to its line's next due job; false when there is none.
local function advance(item)
  if item.at > #item.page and not item.done then
    item.page = redis.call('ZRANGE', item.key, item.rank, item.rank + item.size - 1, 'WITHSCORES')
    item.done = #item.page < item.size * 2
    item.start = item.rank
    item.rank = item.rank + item.size
    item.size = item.size * 4
    item.at = 1
  end
  local score = item.page[item.at + 1]
  item.score = score and tonumber(score)
  item.handle = item.page[item.at]
  item.at = item.at + 2
  return score and item.score <= now
end

local function open(line, key, others, rank)
  local item = { line = line, key = key, others = others, rank = rank or 0, page = {}, at = 1 }
  item.size = math.min(limit, 16)
  if advance(item) then
    push(item)
  end
end

local function has_others(item)
  for _, key in ipairs(item.others) do
    probes = probes + 1
    if not redis.call('ZSCORE', key, item.handle) then
      return false
    end
  end
  return true
end

local function add(handle, line)
  taken[#taken + 1] = handle
  lines_taken[#taken] = line
end

-- The usual case, one line left: what it has that is due, without looking at each job.
local function take_run(item)
  local start = item.start + (item.at - 3) / 2 -- the rank of item.handle
  local run = redis.call('ZRANGEBYSCORE', item.key, '-inf', now, 'LIMIT', start, limit - #taken)
  for _, handle in ipairs(run) do
    add(handle, item.line)
  end
end

-- Lease from the open lines, opening those of `feeds` as their turn comes.
local function take(priority, feeds)
  while #taken < limit do
    local feed, score = next_feed(feeds)
    while feed and (not heap[1] or score <= heap[1].score) do
      local line = feed.page[feed.at]
      feed.at = feed.at + 2
      if is_wanted(line, true) then
        open(line, line_key(line), {})
      end
      feed, score = next_feed(feeds)
    end
    local item = heap[1]
    if not item then
      return
    end
    if not feed and not heap[2] and #item.others == 0 then
      return take_run(item)
    end
    if has_others(item) then
      add(item.handle, item.line)
    end
    if probes >= PROBES_MAX then
      stopped_at = { priority, item.score, item.handle }
      return
    end
    if advance(item) then
      sift_down()
    else
      pop()
    end
  end
end

-- --- by tags: only the lines that have them ----------------------------------------------------

-- The rank of the first entry after (score, handle): where a call that stopped goes on.
local function rank_after(key, score, handle)
  local low, high = 0, redis.call('ZCARD', key)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local entry = redis.call('ZRANGE', key, middle, middle, 'WITHSCORES')
    local entry_score = tonumber(entry[2])
    if entry_score < score or (entry_score == score and entry[1] <= handle) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

local function lines_by_priority()
  local key, fewest
  for _, tag in ipairs(tags) do
    local lines = redis.call('SCARD', K.root .. ':tagged:' .. tag)
    if not fewest or lines < fewest then
      key, fewest = K.root .. ':tagged:' .. tag, lines
    end
  end
  local lines = {}
  for _, line in ipairs(redis.call('SMEMBERS', key)) do
    if is_wanted(line, false) then
      local priority = lane_names(lane_number(line))[4]
      lines[priority] = lines[priority] or {}
      table.insert(lines[priority], line)
    end
  end
  return lines
end

-- Walk the rarest of the tags within the line and look each job up in the others.
local function open_tagged(line, priority)
  local keys = {}
  for index, tag in ipairs(tags) do
    local key = tag_line_key(line, tag)
    local jobs = redis.call('ZCARD', key)
    if jobs == 0 then
      return
    end
    keys[index] = { key, jobs }
  end
  table.sort(keys, function(one, other) return one[2] < other[2] end)
  local others = {}
  for index = 2, #keys do
    others[index - 1] = keys[index][1]
  end
  local rank = 0
  if resume and resume[1] == priority then
    rank = rank_after(keys[1][1], resume[2], resume[3])
  end
  open(line, keys[1][1], others, rank)
end

local tagged = #tags > 0 and lines_by_priority()
for priority = resume and resume[1] or 0, PRIORITY_LAST do
  heap = {}
  if tagged then
    for _, line in ipairs(tagged[priority] or {}) do
      open_tagged(line, priority)
    end
    take(priority, {})
  else
    take(priority, feeds_of(priority))
  end
  if #taken >= limit or stopped_at then
    break
  end
end

-- --- leasing -----------------------------------------------------------------------------------

if #taken == 0 then
  return { { {}, {}, {} }, stopped_at and cmsgpack.pack(stopped_at) }
end
local rows, bodies = fetch('HMGET', K.rows, taken), fetch('HMGET', K.bodies, taken)
for index, handle in ipairs(taken) do
  if not rows[index] or not bodies[index] then
    local line = lines_taken[index]
    return redis.error_reply('CORRUPT job ' .. handle .. ' waits in line ' .. line .. ' and is not stored')
  end
end

local WRITTEN = HEAD .. string.sub(REST, 2)
local FULL = 1
local leases = {}
reserve_events(#taken)
for index, packed in ipairs(rows) do
  local handle = taken[index]
  local row = read_row(packed)
  local started_at, last_failed_at, finalized_at = now, NONE, NONE
  if row.full == FULL then
    read_rest(row, packed)
    started_at = row.started_at == NONE and now or row.started_at
    last_failed_at, finalized_at = row.last_failed_at, row.finalized_at
  end
  local version, attempt = row.version + 1, row.attempt + 1
  local token = string.format('%d.%s', attempt, nonce)
  local scheduled_at = math.max(row.run_at, row.updated_at)
  local length = lease_us or (row.lease_us ~= NONE and row.lease_us)
  local lease_until = length and now + length
  local event = log_event(row.lane, row.event, cmsgpack.pack({
    now, (struct.unpack(NAMES, bodies[index])), 'l', row.state, 'r', version, attempt, row.failures,
    row.losses, row.run_at, worker, lease_until, now - scheduled_at,
  }))
  rows[index] = struct.pack(WRITTEN, row.lane, row.flags, event, FULL, 'r', version, attempt,
    row.failures, row.losses, row.run_at, now, row.created_at, row.lease_us, #row.tags, row.tags,
    #row.scope, row.scope, now, scheduled_at, started_at, last_failed_at, finalized_at, #token, token,
    #worker, worker)
  hset(K.rows, handle, rows[index])
  leave(row, handle)
  row.state, row.line = 'r', line_of(row.lane, 'r')
  leases[index] = lease_until and string.format('%d', lease_until) or 'inf'
  enter(row, handle, packed, leases[index])
end
write_all()
write_heads()
return { jobs_reply(taken, rows, bodies, leases), false }
