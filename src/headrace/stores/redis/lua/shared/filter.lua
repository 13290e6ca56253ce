-- filter: the filters of a query, on a row alone.
--
-- uses     rows lanes
--
-- A filter is { tenant, queues, types, states, tags, assignee, created_from, created_before,
-- finalized_before }, each false when it does not filter; tags may be empty.

local filter_sets

local function has_tags(present, wanted)
  if #wanted == 0 then
    return true
  end
  local framed = '\n' .. present .. '\n'
  for _, tag in ipairs(wanted) do
    if not string.find(framed, '\n' .. tag .. '\n', 1, true) then
      return false
    end
  end
  return true
end

local function matches(filter, packed)
  if not filter_sets then
    filter_sets = { queues = set_of(filter[2]), types = set_of(filter[3]), states = set_of(filter[4]) }
  end
  local row = read_row(packed)
  local tenant, created_from, created_before = filter[1], filter[7], filter[8]
  if (filter_sets.states and not filter_sets.states[row.state])
    or (created_from and row.created_at < created_from)
    or (created_before and row.created_at >= created_before)
    or not has_tags(row.tags, filter[5]) then
    return false
  end
  if tenant or filter_sets.queues or filter_sets.types then
    local names = lane_names(row.lane)
    if (tenant and names[1] ~= tenant)
      or (filter_sets.queues and not filter_sets.queues[names[2]])
      or (filter_sets.types and not filter_sets.types[names[3]]) then
      return false
    end
  end
  if filter[6] or filter[9] then
    read_rest(row, packed)
    return (not filter[6] or row.assignee == filter[6])
      and (not filter[9] or (row.finalized_at ~= NONE and row.finalized_at < filter[9]))
  end
  return true
end
