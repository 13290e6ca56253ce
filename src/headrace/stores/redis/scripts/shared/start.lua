-- start: where the event log begins.
--
-- keys     sequences events

-- The seq of the last event that was trimmed, 0 if none was. Seqs have no gaps, so it is the one before the
-- first entry or, where all are gone, the last that was given.
local function trimmed_upto()
  local first = redis.call('XRANGE', K.events, '-', '+', 'COUNT', 1)[1]
  if first then
    return tonumber(string.match(first[1], '^%d+')) - 1
  end
  return tonumber(redis.call('HGET', K.sequences, 'events') or 0)
end
