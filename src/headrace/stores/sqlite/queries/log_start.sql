-- The last number that was trimmed from the log, 0 if none was: numbers have no gaps, so it is the one
-- before the first event or, where all are gone, the last that was given.
SELECT coalesce(
    (SELECT min(seq) - 1 FROM events),
    (SELECT max(seq) FROM sqlite_sequence WHERE name = 'events'),
    0
);
