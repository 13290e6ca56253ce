-- claim: lease due jobs, in the order priority, run_at, seq.
--
-- uses     rows writes blocks lanes lines lineup places log heap reply records requests walks picking leasing
-- keys     rows bodies more leases blocked blocks counts failures lanes sequences events pauses root
-- derived  those of lines and records
-- args     1  the request, as in requests
--          2  where to go on: { priority, { run_at, handle } } packed, or ''
-- returns  { jobs as in reply, where to go on or false }: with more than one tag a call looks at a
--          bounded number of jobs; if it leased none by then it says where the next call goes on
-- errors   CORRUPT: a waiting job has no row; nothing was written

local resume = ARGV[2] ~= '' and cmsgpack.unpack(ARGV[2])
gated = set_of(redis.call('HKEYS', records_key(GATE)))

local tagged = #tags > 0 and tagged_lines()
local priority = resume and resume[1] or 0
while priority <= PRIORITY_LAST and #taken < limit do
  local list
  heap = {}
  if tagged then
    for _, line in ipairs(tagged[priority] or {}) do
      open(line, resume and resume[1] == priority and resume[2])
    end
  elseif queues then
    for queue in pairs(wanted_queues) do
      open_queue(priority, queue)
    end
  else
    list = walk_along(queues_key(priority, tenant), 0, PAGE)
  end
  take(limit, priority, list)
  if stopped_at then
    break
  end
  priority = priority + 1
end

local jobs, damage = lease_jobs(taken, lines_taken)
if damage then
  return redis.error_reply(damage)
end
local is_unfinished = stopped_at and #taken == 0
return { jobs, is_unfinished and cmsgpack.pack({ priority, stopped_at }) }
