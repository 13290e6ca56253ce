-- walks: what is due in a sorted set, one by one; and the due jobs of a line that have the wanted tags.
--
-- keys     root
--
-- A walk stands at a member that is due at `score`. With several tags the walk along a line goes through
-- the jobs of the rarest, and each of them has yet to be looked up in the others.

local PAGE = 16 -- members to read at first, where more than that may be wanted
local PROBES_MAX = 10000 -- lookups of one call: past that it stops, and the next goes on from there

local probes = 0

-- Move to the next member; false when none is due.
local function advance(walk)
  if walk.at > #walk.page and not walk.done then
    walk.page = redis.call('ZRANGE', walk.key, walk.rank, walk.rank + walk.size - 1, 'WITHSCORES')
    walk.done = #walk.page < walk.size * 2
    walk.start = walk.rank
    walk.rank = walk.rank + walk.size
    walk.size = walk.size * 4
    walk.at = 1
  end
  local score = walk.page[walk.at + 1]
  walk.score = score and tonumber(score)
  walk.member = walk.page[walk.at]
  walk.at = walk.at + 2
  return score and walk.score <= horizon
end

-- A walk at the first member that is due, from the rank on; nil when there is none. `size`: how many
-- members to read at first.
local function walk_along(key, rank, size)
  local walk = { key = key, rank = rank, page = {}, at = 1, size = size }
  return advance(walk) and walk or nil
end

-- The rank of the first entry after { score, member }: where a call that stopped goes on.
local function rank_after(key, position)
  local score, member = position[1], position[2]
  local low, high = 0, redis.call('ZCARD', key)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local entry = redis.call('ZRANGE', key, middle, middle, 'WITHSCORES')
    local entry_score = tonumber(entry[2])
    if entry_score < score or (entry_score == score and entry[1] <= member) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

-- The line's sorted sets of the wanted tags, the rarest first; nil when there is none of one.
local function tag_keys(line)
  local keys, jobs = {}, {}
  for index, tag in ipairs(tags) do
    local key = tag_line_key(line, tag)
    keys[index] = key
    jobs[key] = redis.call('ZCARD', key)
    if jobs[key] == 0 then
      return nil
    end
  end
  table.sort(keys, function(one, other) return jobs[one] < jobs[other] end)
  return keys
end

-- A walk at the first due job of the line, or the first after the position; nil when there is none.
local function walk_of(line, after)
  local keys = #tags == 0 and { line_key(line) } or tag_keys(line)
  if not keys then
    return nil
  end
  local key = table.remove(keys, 1)
  local walk = walk_along(key, after and rank_after(key, after) or 0, math.min(limit, PAGE))
  if walk then
    walk.line, walk.others = line, keys
  end
  return walk
end

local function has_other_tags(walk)
  for _, key in ipairs(walk.others) do
    probes = probes + 1
    if not redis.call('ZSCORE', key, walk.member) then
      return false
    end
  end
  return true
end
