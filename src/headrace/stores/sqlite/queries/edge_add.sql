-- Dependencies. A pair of jobs has one edge; the last word on its kind stands.
INSERT INTO edges (parent_id, child_id, kind, outcome, seen) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (parent_id, child_id) DO UPDATE
SET kind = excluded.kind, outcome = excluded.outcome, seen = excluded.seen;
