-- A new job's payload: written once.
INSERT INTO payloads (seq, payload) VALUES (?, ?);
