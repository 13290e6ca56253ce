-- In order, so that two processes that add the same lanes never wait for each other.
INSERT INTO headrace.lanes (tenant, queue, type, priority, limit_key)
SELECT
    new.tenant,
    new.queue,
    new.type,
    new.priority,
    new.limit_key
FROM unnest($1::text[], $2::text[], $3::text[], $4::smallint[], $5::text[])
AS new (tenant, queue, type, priority, limit_key)
ORDER BY new.tenant, new.queue, new.type, new.priority, new.limit_key
ON CONFLICT DO NOTHING
