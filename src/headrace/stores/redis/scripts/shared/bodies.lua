-- bodies: the payload in a job's body.
--
-- After the names a body is what rows.py packs: a byte that says how many values follow, and of those
-- the payload first, as msgpack writes bytes: one that says how long the length is, the length, itself.

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
