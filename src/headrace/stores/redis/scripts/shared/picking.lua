-- picking: which jobs a claim takes, in order; nothing is written yet.
--
-- The heap holds walks along lines, and along lists of lines, whose next line is opened when its turn comes.

local taken, lines_taken = {}, {}
local stopped_at = false -- { score, handle } where the lookups of one call were used up

-- Have the line's jobs taken, from the position on.
local function open(line, after)
  local walk = walk_of(line, after)
  if walk then
    push(walk)
    if #tags == 0 then
      firsts[line] = { walk.page[1], walk.page[2] }
    end
  end
end

-- Have the jobs of the queue taken, line by line.
local function open_queue(priority, queue)
  local walk = not is_passed_over(queue, tenant) and walk_along(lines_key(priority, tenant, queue), 0, PAGE)
  if walk then
    push(walk)
  end
end

-- Move what is first in the heap on.
local function step()
  if advance(heap[1]) then
    sift_down()
  else
    pop()
  end
end

local function add(handle, line)
  taken[#taken + 1] = handle
  lines_taken[#taken] = line
end

-- The usual case, one line left: the rest of the page, then what else is due, without looking at each.
local function take_run(walk, wanted)
  repeat
    add(walk.member, walk.line)
    if #taken == wanted then
      return
    end
  until walk.at > #walk.page or not advance(walk)
  if walk.at > #walk.page and not walk.done then
    local run = redis.call('ZRANGEBYSCORE', walk.key, '-inf', horizon, 'LIMIT', walk.rank, wanted - #taken)
    for _, handle in ipairs(run) do
      add(handle, walk.line)
    end
  end
end

-- Take from what is open until `wanted` are taken, opening the queues of a list as their turn comes.
local function take(wanted, priority, list)
  while #taken < wanted do
    while list and (not heap[1] or list.score <= heap[1].score) do
      open_queue(priority, list.member)
      list = advance(list) and list
    end
    local walk = heap[1]
    if not walk then
      return
    end
    if not walk.line then
      local line = line_listed(walk.member)
      step()
      if is_wanted(line, true) then
        open(line)
      end
    elseif not list and not heap[2] and #walk.others == 0 then
      return take_run(walk, wanted)
    else
      if has_other_tags(walk) then
        add(walk.member, walk.line)
      end
      if probes >= PROBES_MAX then
        stopped_at = { walk.score, walk.member }
        return
      end
      step()
    end
  end
end
