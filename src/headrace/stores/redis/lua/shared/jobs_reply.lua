-- jobs_reply: whole jobs, as rows.py reads them.
--
-- uses     rows lanes
-- keys     bodies leases more
--
-- { lanes, jobs, more }: lanes is a flat list of number, names as JSON; jobs of handle, row, body,
-- lease_until ('' when not leased); more of handle and letter, value.

-- `bodies` and `leases`: what the caller has of those at hand already.
local function jobs_reply(handles, rows, bodies, leases)
  local jobs, leased, fields = {}, {}, {}
  local lanes, seen = {}, {}
  bodies = bodies or fetch('HMGET', K.bodies, handles)
  for index, handle in ipairs(handles) do
    local packed = rows[index]
    local lane, flags, _, _, state = struct.unpack('>I4BI8Bc1', packed)
    local at = index * 4
    jobs[at - 3], jobs[at - 2], jobs[at - 1], jobs[at] = handle, packed, bodies[index], leases and leases[index] or ''
    if not leases and LEASED[state] then
      leased[#leased + 1] = handle
      leased[handle] = at
    end
    if flags > 0 then
      for letter, flag in pairs(MORE) do
        if bit.band(flags, flag) > 0 then
          fields[#fields + 1] = handle .. letter
        end
      end
    end
    if not seen[lane] then
      seen[lane] = true
      lanes[#lanes + 1] = lane
    end
  end
  for index, lease in ipairs(fetch('ZMSCORE', K.leases, leased)) do
    jobs[leased[leased[index]]] = lease
  end
  local more = {}
  for index, value in ipairs(fetch('HMGET', K.more, fields)) do
    more[index * 2 - 1], more[index * 2] = fields[index], value
  end
  return { named_lanes(lanes), jobs, more }
end
