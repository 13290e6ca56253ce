-- rewrite: replace contents of jobs that are as they were read, and not leased.
--
-- uses     rows holding bodies
-- keys     jobs rows bodies more leases expiry keys
-- args     per job: id, version as read, number of things given; then per thing its letter (b payload as
--          a body has it, r result, c checkpoint, l log, f message of the failure), its value
-- returns  per job: 1 written, 0 left alone
-- errors   none of its own

local function write(handle, row, packed, first, last)
  local flags = row.flags
  for argument = first, last, 2 do
    local letter, value = ARGV[argument], ARGV[argument + 1]
    if letter == 'b' then
      local body = redis.call('HGET', K.bodies, handle)
      redis.call('HSET', K.bodies, handle, with_payload(body, value))
    elseif letter == 'f' then
      local failure = redis.call('HGET', K.more, handle .. letter)
      if failure then
        failure = cjson.decode(failure)
        failure[1] = value
        redis.call('HSET', K.more, handle .. letter, cjson.encode(failure))
      end
    else
      flags = bit.bor(flags, MORE[letter])
      redis.call('HSET', K.more, handle .. letter, value)
    end
  end
  if flags ~= row.flags then
    redis.call('HSET', K.rows, handle, with_flags(row, packed, flags))
  end
end

local answers, argument = {}, 1
while argument <= #ARGV do
  local id, version, things = ARGV[argument], tonumber(ARGV[argument + 1]), tonumber(ARGV[argument + 2])
  local packed, handle = packed_row_of(id)
  local row = packed and read_row(packed)
  local as_read = row and row.version == version and not LEASED[row.state]
  local following = argument + 3 + 2 * things
  if as_read then
    write(handle, row, packed, argument + 3, following - 1)
  end
  answers[#answers + 1] = as_read and 1 or 0
  argument = following
end
return answers
