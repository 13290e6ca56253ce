-- Jobs have ended: give their keys up, except those that are to be kept or that another job holds
-- by now. Spelled out, since SQLite would read the whole table for a list of rows.
DELETE FROM keys
WHERE
    released_when_terminal = 1
    AND (
        (tenant = ? AND queue = ? AND type = ? AND key = ? AND job_id = ?)
    );
