-- Up to `the_limit` jobs that match every filter, in order of seq. NULL does not filter.
-- The text is put together from the filters that are there, and planned for their values each time:
-- one plan for all combinations would be bad for most.
CREATE FUNCTION headrace.find_jobs(
    the_ids text[],
    the_lanes integer[],
    the_states text[],
    the_tags text[],
    the_assignee text,
    created_from timestamptz,
    created_before timestamptz,
    finalized_before timestamptz,
    newest_first boolean,
    after_seq bigint,
    the_limit integer
) RETURNS SETOF headrace.job_rows
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    driver text;
    wanted text := 'SELECT job.* FROM headrace.job_rows AS job';
BEGIN
    IF cardinality(the_tags) > 0 THEN
        -- The rarest tag leads; the others are looked up job by job.
        driver := (headrace.rarest_first(the_tags))[1];
        wanted := wanted
            || ' INNER JOIN headrace.job_tags ON job_tags.seq = job.seq AND job_tags.tag = $12';
    END IF;
    wanted := wanted || ' WHERE TRUE'
        || CASE WHEN the_ids IS NOT NULL THEN ' AND job.id = ANY ($1)' ELSE '' END
        || CASE WHEN the_lanes IS NOT NULL THEN ' AND job.lane = ANY ($2)' ELSE '' END
        || CASE WHEN the_states IS NOT NULL THEN ' AND job.state = ANY ($3)' ELSE '' END
        || CASE WHEN cardinality(the_tags) > 1 THEN ' AND job.tags @> $4' ELSE '' END
        || CASE WHEN the_assignee IS NOT NULL THEN ' AND job.assignee = $5' ELSE '' END
        || CASE WHEN created_from IS NOT NULL THEN ' AND job.created_at >= $6' ELSE '' END
        || CASE WHEN created_before IS NOT NULL THEN ' AND job.created_at < $7' ELSE '' END
        || CASE WHEN finalized_before IS NOT NULL THEN ' AND job.finalized_at < $8' ELSE '' END
        || CASE
            WHEN after_seq IS NULL THEN ''
            WHEN newest_first THEN ' AND job.seq < $10'
            ELSE ' AND job.seq > $10'
        END
        || ' ORDER BY job.seq' || CASE WHEN newest_first THEN ' DESC' ELSE '' END || ' LIMIT $11';
    RETURN QUERY EXECUTE wanted
    USING
        the_ids, the_lanes, the_states, the_tags, the_assignee, created_from, created_before,
        finalized_before, newest_first, after_seq, the_limit, driver;
END;
$$;
