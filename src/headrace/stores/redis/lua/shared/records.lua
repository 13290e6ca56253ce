-- records: small named documents, each with the version it is at.
--
-- keys     root
-- derived  {root}:records:<kind>  hash  by name, the version and then the body (same hash tag as the root)

local GATE = 'gate' -- the kind that stands before a queue of the same name
local VERSION = '>I8' -- how a record starts; records.py has the same

local function records_key(kind)
  return K.root .. ':records:' .. kind
end

-- 0: there is none.
local function record_version(kind, name)
  local packed = redis.call('HGET', records_key(kind), name)
  return packed and (struct.unpack(VERSION, packed)) or 0
end

local function write_record(kind, name, version, body)
  redis.call('HSET', records_key(kind), name, struct.pack(VERSION, version) .. body)
end
