-- get: whole jobs by id.
--
-- uses     rows lanes reply
-- keys     jobs rows bodies more leases lanes
-- args     1     stop when the bodies found come to so many bytes
--          then  the ids
-- returns  { jobs as in reply, those that exist; how many of the ids were looked at }
-- errors   none of its own

local bytes_left = tonumber(ARGV[1])
local handles, ids = {}, {}
for argument = 2, #ARGV do
  ids[argument - 1] = ARGV[argument]
end
local looked_at = 0
for index, seq in ipairs(fetch('ZMSCORE', K.jobs, ids)) do
  if bytes_left <= 0 then
    break
  end
  looked_at = index
  if seq then
    handles[#handles + 1] = handle_of(tonumber(seq))
    bytes_left = bytes_left - redis.call('HSTRLEN', K.bodies, handles[#handles])
  end
end
return { jobs_reply(handles, fetch('HMGET', K.rows, handles)), looked_at }
