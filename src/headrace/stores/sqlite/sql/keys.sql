-- name: key_holders
-- Which of these keys are held now. The list holds [tenant, queue, type, key] each.
SELECT
    wanted.key AS position,
    keys.job_id
FROM json_each(:scopes) AS wanted
CROSS JOIN keys
    ON
        keys.tenant = json_extract(wanted.value, '$[0]')
        AND keys.queue = json_extract(wanted.value, '$[1]')
        AND keys.type = json_extract(wanted.value, '$[2]')
        AND keys.key = json_extract(wanted.value, '$[3]')
WHERE keys.expires_at IS NULL OR keys.expires_at > :now

-- name: key_hold
-- Hold keys. A row that is there has expired: the writer has looked in the same transaction.
INSERT OR REPLACE INTO keys (
    tenant, queue, type, key, job_id, expires_at, released_when_terminal
)
VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: key_release
-- Jobs have ended: give their keys up, except those that are to be kept or that another job holds
-- by now. Spelled out, since SQLite would read the whole table for a list of rows.
DELETE FROM keys
WHERE
    released_when_terminal = 1
    AND (
        (tenant = ? AND queue = ? AND type = ? AND key = ? AND job_id = ?)
    )

-- name: key_remove
-- Jobs are deleted: their keys go with them, except those that another job holds by now.
DELETE FROM keys
WHERE (tenant = ? AND queue = ? AND type = ? AND key = ? AND job_id = ?)
