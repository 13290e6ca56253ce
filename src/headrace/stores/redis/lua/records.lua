-- script: put_record
-- Store a record as its next version, if it is still at the version it was read at.
--
-- uses     records
-- keys     root
-- derived  those of records
-- args     1 kind   2 name   3 version as read, 0: not there   4 body
-- returns  1 stored, 0 it has moved on: nothing was written
-- errors   none of its own

if record_version(ARGV[1], ARGV[2]) ~= tonumber(ARGV[3]) then
  return 0
end
write_record(ARGV[1], ARGV[2], ARGV[3] + 1, ARGV[4])
return 1

-- script: delete_record
-- Delete a record if it is still at the version it was read at.
--
-- uses     records
-- keys     root
-- derived  those of records
-- args     1 kind   2 name   3 version as read
-- returns  1 deleted, 0 it has moved on or is not there: nothing was deleted
-- errors   none of its own

local version = record_version(ARGV[1], ARGV[2])
if version == 0 or version ~= tonumber(ARGV[3]) then
  return 0
end
return redis.call('HDEL', records_key(ARGV[1]), ARGV[2])
