SELECT
    queue,
    tenant,
    since
FROM headrace.pauses
