-- lines: waiting jobs in claim order.
--
-- keys     root
-- derived  {root}:line:<lane>:<state>        zset  jobs that wait in that state, by run_at then seq
--          {root}:line:<lane>:<state>:<tag>  zset  those of them that have the tag
--          {root}:tagged:<tag>               set   the lines with waiting jobs that have the tag
--          {root}:heads:<priority><scope>    zset  the lines with waiting jobs, by their first run_at;
--                                                  scope: all, a queue, a tenant, a tenant's queue
--          Which of these a job is in depends on its row. All share the root's hash tag, so they are
--          in the same cluster slot as the keys that are passed.
--
-- A line is named <lane>:<state>. An empty line leaves no key behind, and is in no other key.

local touched_lines, touched_tags = {}, {}

local line_keys = {}

local function line_key(line)
  local key = line_keys[line]
  if not key then
    key = K.root .. ':line:' .. line
    line_keys[line] = key
  end
  return key
end

local function tag_line_key(line, tag)
  return K.root .. ':line:' .. line .. ':' .. tag
end

local function heads_key(priority, tenant, queue)
  local key = K.root .. ':heads:' .. priority
  if tenant and queue then
    return key .. ':b:' .. tenant .. '\n' .. queue
  elseif tenant then
    return key .. ':t:' .. tenant
  elseif queue then
    return key .. ':q:' .. queue
  end
  return key
end

local function each_tag(tags)
  return string.gmatch(tags, '[^\n]+')
end

local function touch_tags(row)
  for tag in each_tag(row.tags) do
    touched_tags[tag] = touched_tags[tag] or {}
    touched_tags[tag][row.line] = true
  end
end

local function line_up(row, handle)
  local line = row.line
  zadd(line_key(line), row.run_at, handle)
  touched_lines[line] = row.lane
  if row.tags ~= '' then
    for tag in each_tag(row.tags) do
      zadd(tag_line_key(line, tag), row.run_at, handle)
    end
    touch_tags(row)
  end
end

local function step_out(row, handle)
  local line = row.line
  zrem(line_key(line), handle)
  touched_lines[line] = row.lane
  if row.tags ~= '' then
    for tag in each_tag(row.tags) do
      zrem(tag_line_key(line, tag), handle)
    end
    touch_tags(row)
  end
end

local function write_head(line, lane)
  local names = lane_names(lane)
  local tenant, queue, priority = names[1], names[2], names[4]
  local all = heads_key(priority)
  local head = redis.call('ZRANGE', line_key(line), 0, 0, 'WITHSCORES')[2]
  if head then
    local noted = redis.call('ZSCORE', all, line)
    if noted and tonumber(noted) == tonumber(head) then
      return
    end
  end
  local of_queue, of_tenant = heads_key(priority, nil, queue), heads_key(priority, tenant)
  for _, key in ipairs({ all, of_queue, of_tenant, heads_key(priority, tenant, queue) }) do
    if head then
      redis.call('ZADD', key, head, line)
    else
      redis.call('ZREM', key, line)
    end
  end
end

-- After write_all: bring what is known of each touched line up to date.
local function write_heads()
  for line, lane in pairs(touched_lines) do
    write_head(line, lane)
  end
  for tag, lines in pairs(touched_tags) do
    for line in pairs(lines) do
      local waits = redis.call('EXISTS', tag_line_key(line, tag)) == 1
      redis.call(waits and 'SADD' or 'SREM', K.root .. ':tagged:' .. tag, line)
    end
  end
end
