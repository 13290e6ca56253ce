-- log: appending to the event log, and where it begins.
--
-- uses     rows
-- keys     sequences events
--
-- The log is a stream whose entry ids are <seq>-0, without gaps. Each entry has one field: the lane,
-- the seq of the same job's event before it (0: none) and the event as log.py packs it. The chain of
-- earlier events makes a job's history readable without an index of its own.

local next_event

-- Take `count` seqs; `log_event` uses them up in order.
local function reserve_events(count)
  next_event = redis.call('HINCRBY', K.sequences, 'events', count) - count + 1
end

local function log_event(lane, previous, packed)
  local seq = next_event
  next_event = seq + 1
  redis.call('XADD', K.events, seq .. '-0', 'e', struct.pack(LINK, lane, previous) .. packed)
  return seq
end

-- The seq of the last event that was trimmed, 0 if none was. Seqs have no gaps, so it is the one before the
-- first entry or, where all are gone, the last that was given.
local function trimmed_upto()
  local first = redis.call('XRANGE', K.events, '-', '+', 'COUNT', 1)[1]
  if first then
    return tonumber(string.match(first[1], '^%d+')) - 1
  end
  return tonumber(redis.call('HGET', K.sequences, 'events') or 0)
end
