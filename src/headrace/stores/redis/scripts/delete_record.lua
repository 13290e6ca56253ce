-- delete_record: delete a record if it is still at the version it was read at.
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
