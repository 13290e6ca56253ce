-- heap: the first of several walks, by score and then member.

local heap = {}

local function before(one, other)
  if one.score ~= other.score then
    return one.score < other.score
  end
  return one.member < other.member
end

local function sift_down()
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

local function push(item)
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
local function pop()
  local size = #heap
  heap[1] = heap[size]
  heap[size] = nil
  sift_down()
end
