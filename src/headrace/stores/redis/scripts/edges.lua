-- edges: the edges from a parent, or into a child, in the order they were stored.
--
-- uses     rows edges
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
