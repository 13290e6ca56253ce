-- Where the jobs of a commit stand now, in the order of `commits._Standing`. As one value, since each
-- row would be one more step.
SELECT
    json_group_array(
        json_array(
            jobs.id, jobs.seq, jobs.lease_until, jobs.lane, jobs.version, jobs.state, jobs.token,
            jobs.assignee, jobs.attempt, jobs.failures, jobs.losses
        )
    )
FROM json_each(?) AS wanted
CROSS JOIN jobs ON jobs.id = wanted.value;
