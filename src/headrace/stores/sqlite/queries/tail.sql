-- The last number the log has given, 0 before the first; it stays when events are trimmed.
SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'events';
