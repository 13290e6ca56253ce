-- edges: the dependency graph.
--
-- keys     root edges unseen sequences
-- derived  {root}:from:<parent id>  zset  children, in the order the edges were stored
--          {root}:into:<child id>   zset  parents, likewise
--          {root}:join:<child id>   hash  how many parents per (must complete, outcome): what makes
--                                         a join cost the same for one parent and for a thousand
--          Which of these are touched depends on the edges. All share the root's hash tag.
--
-- An edge is { parent, child, kind, outcome or false, seen }; `edges` holds the last three packed,
-- under parent \n child. Ids have no line break: they are printable.

local function from_key(parent)
  return K.root .. ':from:' .. parent
end

local function into_key(child)
  return K.root .. ':into:' .. child
end

local function join_key(child)
  return K.root .. ':join:' .. child
end

local function pair_of(parent, child)
  return parent .. '\n' .. child
end

-- The field of `join` that counts such an edge: n(eeded) or a(ny), and the outcome or o(pen).
local function slot_of(kind, outcome)
  return (kind == 'after_any' and 'a' or 'n') .. (outcome or 'o')
end

local function next_ordinal()
  return redis.call('HINCRBY', K.sequences, 'edges', 1)
end

local function write_edge(parent, child, kind, outcome, seen)
  local pair = pair_of(parent, child)
  redis.call('HSET', K.edges, pair, cmsgpack.pack({ kind, outcome, seen }))
  if outcome and not seen then
    redis.call('ZADD', K.unseen, 'NX', next_ordinal(), pair)
  elseif seen then
    redis.call('ZREM', K.unseen, pair)
  end
end

local function read_edge(parent, child)
  local packed = redis.call('HGET', K.edges, pair_of(parent, child))
  return packed and cmsgpack.unpack(packed)
end

-- A count that is zero leaves no field behind.
local function recount(child, slot, by)
  if redis.call('HINCRBY', join_key(child), slot, by) == 0 then
    redis.call('HDEL', join_key(child), slot)
  end
end

-- An edge that is stored already keeps its place, and is otherwise as the new one says.
local function add_edge(parent, child, kind, outcome, seen)
  local twin = read_edge(parent, child)
  if twin then
    recount(child, slot_of(twin[1], twin[2]), -1)
    redis.call('ZREM', K.unseen, pair_of(parent, child))
  else
    local ordinal = next_ordinal()
    redis.call('ZADD', from_key(parent), ordinal, child)
    redis.call('ZADD', into_key(child), ordinal, parent)
  end
  recount(child, slot_of(kind, outcome), 1)
  write_edge(parent, child, kind, outcome, seen)
end

-- Give every open edge from the parent its outcome; append the edges so changed to `touched`, flat.
local function settle_edges(parent, outcome, touched)
  for _, child in ipairs(redis.call('ZRANGE', from_key(parent), 0, -1)) do
    local edge = read_edge(parent, child)
    if not edge[2] then
      recount(child, slot_of(edge[1], false), -1)
      recount(child, slot_of(edge[1], outcome), 1)
      write_edge(parent, child, edge[1], outcome, edge[3])
      for _, item in ipairs({ parent, child, edge[1], outcome, edge[3] and '1' or '0' }) do
        touched[#touched + 1] = item
      end
    end
  end
end

local function see_edge(parent, child)
  local edge = read_edge(parent, child)
  if edge and edge[2] then
    write_edge(parent, child, edge[1], edge[2], true)
  end
end

local function forget_child(child)
  for _, parent in ipairs(redis.call('ZRANGE', into_key(child), 0, -1)) do
    redis.call('ZREM', from_key(parent), child)
    redis.call('HDEL', K.edges, pair_of(parent, child))
    redis.call('ZREM', K.unseen, pair_of(parent, child))
  end
  redis.call('DEL', into_key(child), join_key(child))
end
