-- lists: the sorted sets that hold the jobs of some states, and how many jobs those are.
--
-- uses     rows
-- keys     leases blocked root
-- derived  {root}:finished:<state>, {root}:heads:<priority> and {root}:line:<lane>:<state>, see places
--          and lines (same hash tag as the root)
-- args     1 the states' letters   2 only ended before this (a ZCOUNT bound), or ''
-- returns  { keys, number of jobs in them }: a set may also hold jobs of another state
-- errors   none of its own

local PRIORITY_LAST = 4

local keys, jobs = {}, 0

local function add(key, count)
  if count > 0 then
    keys[#keys + 1] = key
    jobs = jobs + count
  end
end

local leased, lines = false, {}
for state in string.gmatch(ARGV[1], '.') do
  if TERMINAL[state] then
    local key = K.root .. ':finished:' .. state
    if ARGV[2] == '' then
      add(key, redis.call('ZCARD', key))
    else
      add(key, redis.call('ZCOUNT', key, '-inf', ARGV[2]))
    end
  elseif LEASED[state] then
    leased = true
  elseif CLAIMABLE[state] then
    lines[state] = true
  else
    add(K.blocked, redis.call('ZCARD', K.blocked))
  end
end
if leased then
  add(K.leases, redis.call('ZCARD', K.leases))
end
if next(lines) then
  for priority = 0, PRIORITY_LAST do
    for _, line in ipairs(redis.call('ZRANGE', K.root .. ':heads:' .. priority, 0, -1)) do
      if lines[string.sub(line, -1)] then
        local key = K.root .. ':line:' .. line
        add(key, redis.call('ZCARD', key))
      end
    end
  end
end
return { keys, jobs }
