-- open: which schema the store has; an empty store is given one.
--
-- keys     schema
-- args     1 the schema to give an empty store, or '' to leave it empty
-- returns  the store's schema, or '' if it is empty
-- errors   none of its own

local present = redis.call('GET', K.schema)
if not present and ARGV[1] ~= '' then
  redis.call('SET', K.schema, ARGV[1])
  return ARGV[1]
end
return present or ''
