-- How many leases hold now, by lane. As one value, [[lane, jobs], ...].
SELECT json_group_array(json_array(lane, jobs))
FROM (
    SELECT
        lane,
        count(*) AS jobs
    FROM jobs INDEXED BY jobs_leased
    WHERE token IS NOT NULL AND (lease_until IS NULL OR lease_until > :now)
    GROUP BY lane
);
