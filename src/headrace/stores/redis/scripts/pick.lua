-- pick: of these jobs, in this order, whole those that match every filter.
--
-- uses     rows lanes matching reply
-- keys     rows bodies more leases lanes
-- args     1     the filter, as in matching
--          2     at most so many jobs
--          3     stop when the bodies found come to so many bytes
--          then  handles
-- returns  { jobs as in reply, how many of the handles were looked at }
-- errors   none of its own

local filter = cmsgpack.unpack(ARGV[1])
local limit, bytes_left = tonumber(ARGV[2]), tonumber(ARGV[3])
local candidates, handles, rows = {}, {}, {}
for argument = 4, #ARGV do
  candidates[argument - 3] = ARGV[argument]
end
local looked_at = 0
for index, packed in ipairs(fetch('HMGET', K.rows, candidates)) do
  if #handles >= limit or bytes_left <= 0 then
    break
  end
  looked_at = index
  if packed and matches(filter, packed) then
    handles[#handles + 1] = candidates[index]
    rows[#rows + 1] = packed
    bytes_left = bytes_left - redis.call('HSTRLEN', K.bodies, candidates[index])
  end
end
return { jobs_reply(handles, rows), looked_at }
