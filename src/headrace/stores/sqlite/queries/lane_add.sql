-- A lane on its first job. Another process may have been faster, then its row stands.
INSERT INTO lanes (tenant, queue, type, priority) VALUES (?, ?, ?, ?)
ON CONFLICT (tenant, queue, type, priority) DO NOTHING;
