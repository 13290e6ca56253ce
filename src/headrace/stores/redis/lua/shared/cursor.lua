-- cursor: what is due in a sorted set, one by one; the due jobs of a line that have the wanted tags; and
-- the first of several cursors.
--
-- uses     request ready_set
--
-- A cursor stands at a member that is due at `score`. With several tags the cursor along a line goes through
-- the jobs of the rarest, and each of them has yet to be looked up in the others.

local PAGE = 16 -- members to read at first, where more than that may be wanted
local PROBES_MAX = 10000 -- lookups of one call: past that it stops, and the next goes on from there

local probes = 0

-- Move to the next member; false when none is due.
local function advance(cursor)
  if cursor.at > #cursor.page and not cursor.done then
    cursor.page = redis.call('ZRANGE', cursor.key, cursor.rank, cursor.rank + cursor.size - 1, 'WITHSCORES')
    cursor.done = #cursor.page < cursor.size * 2
    cursor.start = cursor.rank
    cursor.rank = cursor.rank + cursor.size
    cursor.size = cursor.size * 4
    cursor.at = 1
  end
  local score = cursor.page[cursor.at + 1]
  cursor.score = score and tonumber(score)
  cursor.member = cursor.page[cursor.at]
  cursor.at = cursor.at + 2
  return score and cursor.score <= horizon
end

-- A cursor at the first member that is due, from the rank on; nil when there is none. `size`: how many
-- members to read at first.
local function cursor_along(key, rank, size)
  local cursor = { key = key, rank = rank, page = {}, at = 1, size = size }
  return advance(cursor) and cursor or nil
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

-- A cursor at the first due job of the line, or the first after the position; nil when there is none.
local function cursor_of(line, after)
  local keys = #tags == 0 and { line_key(line) } or tag_keys(line)
  if not keys then
    return nil
  end
  local key = table.remove(keys, 1)
  local cursor = cursor_along(key, after and rank_after(key, after) or 0, math.min(limit, PAGE))
  if cursor then
    cursor.line, cursor.others = line, keys
  end
  return cursor
end

-- Whether the lookups of one call are used up.
local function is_used_up()
  return probes >= PROBES_MAX
end

local function has_other_tags(cursor)
  for _, key in ipairs(cursor.others) do
    probes = probes + 1
    if not redis.call('ZSCORE', key, cursor.member) then
      return false
    end
  end
  return true
end

-- A heap holds cursors, the first of them by score and then member at its top.

local function before(one, other)
  if one.score ~= other.score then
    return one.score < other.score
  end
  return one.member < other.member
end

local function sift_down(heap)
  local at, size = 1, #heap
  while true do
    local child = at * 2
    if child > size then
      return
    end
    if child < size and before(heap[child + 1], heap[child]) then
      child = child + 1
    end
    if not before(heap[child], heap[at]) then
      return
    end
    heap[at], heap[child] = heap[child], heap[at]
    at = child
  end
end

local function push(heap, item)
  local at = #heap + 1
  heap[at] = item
  while at > 1 do
    local parent = math.floor(at / 2)
    if not before(heap[at], heap[parent]) then
      return
    end
    heap[at], heap[parent] = heap[parent], heap[at]
    at = parent
  end
end

-- Take the first item away.
local function pop(heap)
  local size = #heap
  heap[1] = heap[size]
  heap[size] = nil
  sift_down(heap)
end
