INSERT INTO headrace.pauses (queue, tenant, since) VALUES ($1::text, $2::text, $3::timestamptz)
ON CONFLICT DO NOTHING
