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
WHERE keys.expires_at IS NULL OR keys.expires_at > :now;
