-- annotate: write what the holder of a lease says of its job.
--
-- uses     rows holding
-- keys     jobs rows leases keys more
-- args     1 now   2 id   3 token
--          then    per thing said: its letter (p progress, n note, c checkpoint), its value
-- returns  1 written, 0 the lease does not hold
-- errors   none of its own

local row, handle, packed = held_by(ARGV[2], ARGV[3], tonumber(ARGV[1]))
if not row then
  return 0
end
local flags = row.flags
for argument = 4, #ARGV, 2 do
  for _, one in ipairs(MORE) do
    if one[2] == ARGV[argument] then
      flags = bit.bor(flags, one[1])
    end
  end
  redis.call('HSET', K.more, handle .. ARGV[argument], ARGV[argument + 1])
end
if flags ~= row.flags then
  local said = front(row.lane, flags, row.event) .. string.sub(packed, #front(0, 0, 0) + 1)
  redis.call('HSET', K.rows, handle, said)
end
return 1
