-- In order, so that two processes that add the same lanes never wait for each other.
INSERT INTO headrace.lanes (tenant, queue, type, priority)
SELECT
    new.tenant,
    new.queue,
    new.type,
    new.priority
FROM unnest($1::text[], $2::text[], $3::text[], $4::smallint[]) AS new (tenant, queue, type, priority)
ORDER BY new.tenant, new.queue, new.type, new.priority
ON CONFLICT DO NOTHING
