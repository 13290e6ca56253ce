-- migrate_3: bring a store from schema 2 to schema 3.
--
-- uses     rows writes blocks
-- keys     schema numbers sequences blocks counts failures
-- args     none
-- returns  the schema the store has now; if it was not 2, nothing was changed
-- errors   none of its own
--
-- Jobs, indexes and events are as they were. What is stored already gets no entry in `blocks`, which would take
-- as long as there are jobs: new jobs begin with a block of their own, and `unlisted` says which one that is.
-- `numbers`, renamed, stays behind as a text: every insertion, claim and change by a process of schema 2 starts with
-- that key as a hash, so one that still runs is refused before it has written anything.

local present = redis.call('GET', K.schema)
if present ~= '2' then
  return present
end
if redis.call('EXISTS', K.numbers) == 1 then
  redis.call('RENAME', K.numbers, K.sequences)
  local last = tonumber(redis.call('HGET', K.sequences, 'jobs') or 0)
  local first = block_of(last) + 1
  redis.call('HSET', K.sequences, 'jobs', string.format('%d', first * BLOCK_JOBS - 1), 'unlisted', first)
end
redis.call('SET', K.numbers, 'see sequences: this store has been migrated to schema 3')
redis.call('SET', K.schema, '3')
return '3'
