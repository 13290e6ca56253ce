-- The results that changes brought.
INSERT INTO results (seq, result) VALUES (?, ?)
ON CONFLICT (seq) DO UPDATE SET result = excluded.result;
