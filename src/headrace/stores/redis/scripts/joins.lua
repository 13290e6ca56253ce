-- joins: how many parents of each child are open or ended, and how.
--
-- uses     rows edges
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
