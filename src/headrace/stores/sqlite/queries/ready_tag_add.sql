-- Jobs with a tag have become claimable, or claimable at another time.
INSERT INTO ready_tags (tag, lane, run_at, seq) VALUES (?, ?, ?, ?);
