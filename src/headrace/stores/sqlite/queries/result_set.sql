-- A job's result, when a change brought one.
INSERT INTO results (seq, result) VALUES (?, ?)
ON CONFLICT (seq) DO UPDATE SET result = excluded.result;
