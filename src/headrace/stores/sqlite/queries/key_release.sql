-- A job has ended: give its key up, unless it is to be kept or another job holds it by now.
DELETE FROM keys
WHERE
    tenant = ? AND queue = ? AND type = ? AND key = ? AND job_id = ? AND released_when_terminal = 1;
