-- A lane with a limit key goes with its last job.
DELETE FROM lanes
WHERE
    id = ?
    AND limit_key IS NOT NULL
    AND blocked + pending + running + cancelling + retrying + lost
    + completed + failed + dead + cancelled + abandoned = 0;
