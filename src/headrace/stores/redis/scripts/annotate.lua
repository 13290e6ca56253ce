-- annotate: write what the holder of a lease says of its job.
--
-- uses     rows holding
-- keys     jobs rows leases expiry keys more
-- args     1 now   2 id   3 token
--          then    per thing said: its letter (p progress, n note, c checkpoint, l log), its value
-- returns  1 written, 0 the lease does not hold
-- errors   none of its own

local row, handle, packed = held_by(ARGV[2], ARGV[3], tonumber(ARGV[1]))
if not row then
  return 0
end
local flags = row.flags
for argument = 4, #ARGV, 2 do
  flags = bit.bor(flags, MORE[ARGV[argument]])
  redis.call('HSET', K.more, handle .. ARGV[argument], ARGV[argument + 1])
end
if flags ~= row.flags then
  redis.call('HSET', K.rows, handle, with_flags(row, packed, flags))
end
return 1
