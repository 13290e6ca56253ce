-- migrate_2: bring a store from schema 1 to schema 2.
--
-- uses     rows writes lanes lines lineup
-- keys     schema numbers counts failures lanes root
-- derived  {root}:heads:<priority><scope>  zset  where schema 1 listed lines, by their first run_at
--          {root}:counters                 hash  what schema 2 calls numbers
--          (same hash tag as the root) and those of lines
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
    touched_lines[line] = { lane_of(line), {} }
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
