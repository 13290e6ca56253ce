-- The payloads of new jobs: written once.
INSERT INTO payloads (seq, payload) VALUES (?, ?);
