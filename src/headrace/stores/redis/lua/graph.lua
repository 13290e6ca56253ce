-- script: edges
-- The edges from a parent, or into a child, in the order they were stored.
--
-- uses     edges
-- keys     root edges unseen sequences
-- derived  those of edges
-- args     1 from or into   2 the id   3 after this ordinal   4 at most so many
-- returns  { flat: parent, child, kind, outcome or '', seen (1 or 0); the last ordinal }
-- errors   none of its own

local down = ARGV[1] == 'from'
local key = down and from_key(ARGV[2]) or into_key(ARGV[2])
local found, last = {}, ARGV[3]
local others = redis.call('ZRANGEBYSCORE', key, '(' .. last, '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[4])
for index = 1, #others, 2 do
  local parent, child = ARGV[2], others[index]
  if not down then
    parent, child = child, parent
  end
  local edge = read_edge(parent, child)
  for _, value in ipairs({ parent, child, edge[1], edge[2] or '', edge[3] and '1' or '0' }) do
    found[#found + 1] = value
  end
  last = others[index + 1]
end
return { found, last }

-- script: joins
-- How many parents of each child are open or ended, and how.
--
-- uses     edges
-- keys     root edges unseen sequences
-- derived  {root}:join:<child id>, see edges
-- args     ids of children
-- returns  per child: its slots that are not zero, as in edges (na: needed and abandoned, ao: any and
--          open, …), separated by spaces
-- errors   none of its own

local joins = {}
for index, child in ipairs(ARGV) do
  joins[index] = table.concat(redis.call('HKEYS', join_key(child)), ' ')
end
return joins

-- script: unseen
-- Edges with an outcome that is not yet seen, the longest unseen first.
--
-- uses     rows
-- keys     edges unseen
-- args     1 from this rank on   2 at most so many
-- returns  flat: parent, child, kind, outcome, seen (0)
-- errors   none of its own

local found = {}
local pairs_unseen = redis.call('ZRANGE', K.unseen, ARGV[1], ARGV[1] + ARGV[2] - 1)
for index, packed in ipairs(fetch('HMGET', K.edges, pairs_unseen)) do
  local parent, child = string.match(pairs_unseen[index], '^(.-)\n(.*)$')
  local edge = cmsgpack.unpack(packed)
  for _, value in ipairs({ parent, child, edge[1], edge[2], '0' }) do
    found[#found + 1] = value
  end
end
return found
