-- lists: the sorted sets that hold the jobs of some states, and how many jobs those are.
--
-- uses     rows lines
-- keys     leases blocked root
-- derived  {root}:finished:<state>, see places, and those of lines (same hash tag as the root)
-- args     1 the states' letters   2 only ended before this (a ZCOUNT bound), or ''
-- returns  { names, without the root; number of jobs in them }: a set may also hold jobs of another state
-- errors   none of its own

local names, jobs = {}, 0

local function add(name, count)
  if count > 0 then
    names[#names + 1] = name
    jobs = jobs + count
  end
end

local leased, lines = false, {}
for state in string.gmatch(ARGV[1], '.') do
  if TERMINAL[state] then
    local name = 'finished:' .. state
    local key = K.root .. ':' .. name
    if ARGV[2] == '' then
      add(name, redis.call('ZCARD', key))
    else
      add(name, redis.call('ZCOUNT', key, '-inf', ARGV[2]))
    end
  elseif LEASED[state] then
    leased = true
  elseif CLAIMABLE[state] then
    lines[state] = true
  else
    add('blocked', redis.call('ZCARD', K.blocked))
  end
end
if leased then
  add('leases', redis.call('ZCARD', K.leases))
end
if next(lines) then
  for priority = 0, PRIORITY_LAST do
    for _, queue in ipairs(redis.call('ZRANGE', queues_key(priority), 0, -1)) do
      for _, member in ipairs(redis.call('ZRANGE', lines_key(priority, nil, queue), 0, -1)) do
        local line = line_listed(member)
        if lines[string.sub(line, -1)] then
          add('line:' .. line, redis.call('ZCARD', line_key(line)))
        end
      end
    end
  end
end
return { names, jobs }
