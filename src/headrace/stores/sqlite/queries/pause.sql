-- Pause a queue; a pause that stands already keeps its time.
INSERT INTO pauses (queue, tenant, since) VALUES (?, ?, ?)
ON CONFLICT DO NOTHING;
