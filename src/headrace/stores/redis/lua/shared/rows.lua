-- rows: a job's row, and which states mean what.
--
-- A row is what a change writes: `rows.py` packs it, this reads it, and only the claim writes one
-- here. It starts with what the store knows and Python does not (lane, flags, the job's last event),
-- so that scripts put that in front of the bytes they are handed and leave those as they are: a
-- time after the year 2255 does not fit a Lua number, and must come back exact all the same.

local NONE = -9007199254740992 -- "no time" in the packed numbers; rows.py has the same
local FRONT = '>I4BI8' -- lane, flags, last event
local HEAD = '>I4BI8Bc1I4I4I4I4i8i8i8i8I4c0Hc0'
local REST = '>i8i8i8i8i8Hc0Hc0'
local LIMIT = '>i8' -- how a row ends, if the job has one: its execution timeout
local TAGS_AT = struct.size('>Bc1I4I4I4I4i8i8i8i8') + 1 -- in what a change writes, their length before them
local NAMES = '>Hc0Hc0' -- how a body starts: the job's id, and that of the job that spawned it or ''
local LINK = '>I4I8' -- how an event starts: lane, the job's event before
local CHUNK = 4000 -- arguments of one call: Lua's C stack takes 8,000

local CLAIMABLE = { p = true, t = true, l = true }
local LEASED = { r = true, g = true }
local TERMINAL = { c = true, f = true, d = true, x = true, a = true }

-- What else of a job is stored, in `more` under the handle and this letter: result, failure, progress,
-- note, checkpoint, log. Each has a bit of the flags.
local MORE = { r = 1, f = 2, p = 4, n = 8, c = 16, l = 64 }

local SPAWNED = 32 -- one more bit: another job spawned this one

local function handle_of(seq)
  return string.format('%014d', seq)
end

local lines_of = {}

-- <lane>:<state>, the name of a line (see ready_set) and of a count; made once, since all jobs ask.
local function line_of(lane, state)
  local lines = lines_of[lane]
  if not lines then
    lines = {}
    lines_of[lane] = lines
  end
  local line = lines[state]
  if not line then
    line = lane .. ':' .. state
    lines[state] = line
  end
  return line
end

-- Named in one constructor, and not field by field: the table is then made at its full size.
local function read_row(packed)
  local lane, flags, event, full, state, version, attempt, failures, losses, run_at, updated_at,
    created_at, lease_us, tags, scope, rest = struct.unpack(HEAD, packed)
  return {
    lane = lane, flags = flags, event = event, full = full, state = state, version = version,
    attempt = attempt, failures = failures, losses = losses, run_at = run_at,
    updated_at = updated_at, created_at = created_at, lease_us = lease_us, tags = tags,
    scope = scope, rest = rest, line = line_of(lane, state),
  }
end

-- The part that only jobs have that ran or ended: read apart because few scripts ask for it.
local function read_rest(row, packed)
  row.assigned_at, row.scheduled_at, row.started_at, row.last_failed_at, row.finalized_at = NONE, NONE, NONE, NONE, NONE
  row.token, row.assignee, row.limit = '', '', row.rest
  if row.full == 1 then
    row.assigned_at, row.scheduled_at, row.started_at, row.last_failed_at, row.finalized_at,
      row.token, row.assignee, row.limit = struct.unpack(REST, packed, row.rest)
  end
  return row
end

-- The execution timeout as it stands at the end of the row, or ''. For rows whose rest has been read.
local function packed_limit(row, packed)
  return string.sub(packed, row.limit)
end

-- Until when a leased job may run, nil if it has no execution timeout. Likewise.
local function times_out_at(row, packed)
  local limit = packed_limit(row, packed)
  return limit ~= '' and row.assigned_at + struct.unpack(LIMIT, limit) or nil
end

local function front(lane, flags, event)
  return struct.pack(FRONT, lane, flags, event)
end

-- The packed row with other flags.
local function with_flags(row, packed, flags)
  return front(row.lane, flags, row.event) .. string.sub(packed, struct.size(FRONT) + 1)
end

-- One call for many fields or members, in order; a list of values, false where there is none.
local function fetch(command, key, names)
  local count = #names
  if count == 0 then
    return {}
  end
  if count <= CHUNK then
    return redis.call(command, key, unpack(names))
  end
  local found = {}
  for first = 1, count, CHUNK do
    local page = redis.call(command, key, unpack(names, first, math.min(first + CHUNK - 1, count)))
    for index = 1, #page do
      found[first + index - 1] = page[index]
    end
  end
  return found
end

-- After the names a body is what rows.py packs: a byte that says how many values follow, and of those the
-- payload first, as msgpack writes bytes: one that says how long the length is, the length, itself.
local LENGTHS = { [0xc4] = '>B', [0xc5] = '>H', [0xc6] = '>I4' }

-- Where the payload starts, its sign and length included; where its bytes start; how many those are.
local function payload_of(body)
  local _, _, at = struct.unpack(NAMES, body)
  local length, start = struct.unpack(LENGTHS[string.byte(body, at + 1)], body, at + 2)
  return at + 1, start, length
end

-- The body with another payload, which is packed already.
local function with_payload(body, packed)
  local first, start, length = payload_of(body)
  return string.sub(body, 1, first - 1) .. packed .. string.sub(body, start + length)
end

-- The body with something else behind its payload, which is packed already.
local function with_rest(body, packed)
  local _, start, length = payload_of(body)
  return string.sub(body, 1, start + length - 1) .. packed
end
