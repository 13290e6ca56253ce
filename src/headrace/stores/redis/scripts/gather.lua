-- gather: the jobs in some sorted sets, one set after the other.
--
-- uses     rows
-- keys     root
-- derived  {root}:<name> for the names that are given, as lists returns them (same hash tag as the root)
-- args     1     up to this score (a ZRANGEBYSCORE bound)
--          2     how many of the first set to skip
--          3     at most so many jobs
--          then  names of the sets
-- returns  { handles, how many of the sets are through, how many of the next one to skip }
-- errors   none of its own

local skip, limit = tonumber(ARGV[2]), tonumber(ARGV[3])
local handles, through = {}, 0
for argument = 4, #ARGV do
  local wanted = limit - #handles
  local key = K.root .. ':' .. ARGV[argument]
  local page = redis.call('ZRANGEBYSCORE', key, '-inf', ARGV[1], 'LIMIT', skip, wanted)
  for _, handle in ipairs(page) do
    handles[#handles + 1] = handle
  end
  if #page == wanted then
    return { handles, through, skip + #page }
  end
  skip, through = 0, through + 1
end
return { handles, through, 0 }
