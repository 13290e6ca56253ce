-- ready_set: waiting jobs in claim order, one sorted set, called a line, per lane and claimable state.
--
-- keys     root
-- derived  {root}:line:<lane>:<state>         zset  jobs that wait in that state, by run_at then seq
--          {root}:line:<lane>:<state>:<tag>   zset  those of them that have the tag
--          {root}:tagged:<tag>                set   the lines with waiting jobs that have the tag
--          {root}:lines:<priority><scope>     zset  the lines with waiting jobs, by their first job's run_at
--                                                   and seq; scope: a queue, a tenant's queue
--          {root}:queues:<priority><scope>    zset  the queues of those lines, by the first job's run_at;
--                                                   scope: all, a tenant
--          Which of these a job is in depends on its row. All share the root's hash tag, so they are
--          in the same cluster slot as the keys that are passed.
--
-- A line is named <lane>:<state>; where lines are listed, their first job's handle stands before the name,
-- so that the list is in claim order and a claim opens no more lines than it needs. An empty line leaves
-- no key behind, and is in no other key.

local PRIORITY_LAST = 4

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

local function queues_key(priority, tenant)
  return K.root .. ':queues:' .. priority .. (tenant and ':t:' .. tenant or '')
end

-- Names have no line break: they are printable.
local function lines_key(priority, tenant, queue)
  return K.root .. ':lines:' .. priority .. (tenant and ':b:' .. tenant .. '\n' or ':q:') .. queue
end

local function listed_line(handle, line)
  return handle .. ':' .. line
end

local function line_listed(member)
  return string.sub(member, 16)
end

local function lane_of(line)
  return tonumber(string.match(line, '^%d+'))
end

local function each_tag(tags)
  return string.gmatch(tags, '[^\n]+')
end
