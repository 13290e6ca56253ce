-- A record in its next version. The writer has compared the version in the same transaction.
INSERT INTO records (kind, name, version, body) VALUES (?, ?, ?, ?)
ON CONFLICT (kind, name) DO UPDATE
SET version = excluded.version, body = excluded.body;
