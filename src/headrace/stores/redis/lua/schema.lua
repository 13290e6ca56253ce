-- script: open
-- Which schema the store has; an empty store is given one.
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

-- script: migrate_2
-- Bring a store from schema 1 to schema 2.
--
-- uses     lanes ready_set indexes
-- keys     schema numbers counts failures lanes blocked leases root
-- derived  {root}:heads:<priority><scope>  zset  where schema 1 listed lines, by their first run_at
--          {root}:counters                 hash  what schema 2 calls numbers
--          (same hash tag as the root) and those of ready_set
-- args     none
-- returns  the schema the store has now; if it was not 1, nothing was changed
-- errors   none of its own
--
-- Rows, bodies and events are as they were. Lines are listed anew, by their first job. `counters` stays
-- behind as a text: every insertion, claim and change by a process of schema 1 starts with that key as a
-- hash, so one that still runs is refused before it has written anything.

local present = redis.call('GET', K.schema)
if present ~= '1' then
  return present
end

local function forget_heads(key, names)
  local tenant, queue = names[1], names[2]
  redis.call('DEL', key, key .. ':q:' .. queue, key .. ':t:' .. tenant, key .. ':b:' .. tenant .. '\n' .. queue)
end

for priority = 0, PRIORITY_LAST do
  local key = K.root .. ':heads:' .. priority
  for _, line in ipairs(redis.call('ZRANGE', key, 0, -1)) do
    touch_unlisted(line)
    forget_heads(key, lane_names(lane_of(line)))
  end
end
write_lists()

local counters = K.root .. ':counters'
if redis.call('EXISTS', counters) == 1 then
  redis.call('RENAME', counters, K.numbers)
end
redis.call('SET', counters, 'see numbers: this store has been migrated to schema 2')
redis.call('SET', K.schema, '2')
return '2'

-- script: migrate_3
-- Bring a store from schema 2 to schema 3.
--
-- uses     blocks
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
