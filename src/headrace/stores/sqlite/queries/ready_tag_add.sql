-- A job with a tag has become claimable, or claimable at another time.
INSERT INTO ready_tags (tag, lane, run_at, seq) VALUES (?, ?, ?, ?);
