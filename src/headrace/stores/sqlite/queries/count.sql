-- Every tally of a tenant and queue in one row, from the lanes alone: no job is read.
SELECT
    tenant,
    queue,
    sum(blocked),
    sum(pending),
    sum(running),
    sum(cancelling),
    sum(retrying),
    sum(lost),
    sum(completed),
    sum(failed),
    sum(dead),
    sum(cancelled),
    sum(abandoned),
    sum(blocked_failures),
    sum(pending_failures),
    sum(running_failures),
    sum(cancelling_failures),
    sum(retrying_failures),
    sum(lost_failures),
    sum(completed_failures),
    sum(failed_failures),
    sum(dead_failures),
    sum(cancelled_failures),
    sum(abandoned_failures)
FROM lanes
WHERE
    (:tenant IS NULL OR tenant = :tenant)
    AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
GROUP BY tenant, queue;
