-- unseen: edges with an outcome that is not yet seen, the longest unseen first.
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
