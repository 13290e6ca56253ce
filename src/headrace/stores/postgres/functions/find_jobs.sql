-- Up to `the_limit` jobs that match every filter, in order of seq. NULL does not filter.
-- Planned for the values each time: filters that are not there then fold away, and those that are there choose
-- the index. One plan for all combinations would be bad for most. The place to go on from is told of each
-- table: from one the planner does not conclude on the others, and would walk them from their beginning.
CREATE OR REPLACE FUNCTION headrace.find_jobs(
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
SET plan_cache_mode = force_custom_plan
AS $$
#variable_conflict use_column
DECLARE
    driver text;
    -- Says what the states say already, in the words of the index on ended jobs.
    only_ended boolean := coalesce(
        the_states <@ ARRAY['completed', 'failed', 'dead', 'cancelled', 'abandoned'], FALSE
    );
BEGIN
    IF cardinality(the_tags) > 0 THEN
        -- The rarest tag leads; the others are looked up job by job.
        driver := (headrace.rarest_first(the_tags))[1];
    END IF;
    IF driver IS NULL AND newest_first THEN
        RETURN QUERY
        SELECT job.*
        FROM (
            SELECT bodies.seq
            FROM headrace.bodies
            INNER JOIN headrace.jobs ON jobs.seq = bodies.seq
            WHERE
                (the_ids IS NULL OR bodies.id = ANY (the_ids))
                AND (the_lanes IS NULL OR bodies.lane = ANY (the_lanes))
                AND (the_states IS NULL OR jobs.state = ANY (the_states))
                AND (NOT only_ended OR jobs.finalized_at IS NOT NULL)
                AND (the_assignee IS NULL OR jobs.assignee = the_assignee)
                AND (created_from IS NULL OR bodies.created_at >= created_from)
                AND (created_before IS NULL OR bodies.created_at < created_before)
                AND (finalized_before IS NULL OR jobs.finalized_at < finalized_before)
                AND (after_seq IS NULL OR bodies.seq < after_seq)
                AND (after_seq IS NULL OR jobs.seq < after_seq)
            ORDER BY bodies.seq DESC
            LIMIT the_limit
        ) AS found
        INNER JOIN headrace.job_rows AS job ON job.seq = found.seq
        ORDER BY found.seq DESC;
    ELSIF driver IS NULL THEN
        RETURN QUERY
        SELECT job.*
        FROM (
            SELECT bodies.seq
            FROM headrace.bodies
            INNER JOIN headrace.jobs ON jobs.seq = bodies.seq
            WHERE
                (the_ids IS NULL OR bodies.id = ANY (the_ids))
                AND (the_lanes IS NULL OR bodies.lane = ANY (the_lanes))
                AND (the_states IS NULL OR jobs.state = ANY (the_states))
                AND (NOT only_ended OR jobs.finalized_at IS NOT NULL)
                AND (the_assignee IS NULL OR jobs.assignee = the_assignee)
                AND (created_from IS NULL OR bodies.created_at >= created_from)
                AND (created_before IS NULL OR bodies.created_at < created_before)
                AND (finalized_before IS NULL OR jobs.finalized_at < finalized_before)
                AND (after_seq IS NULL OR bodies.seq > after_seq)
                AND (after_seq IS NULL OR jobs.seq > after_seq)
            ORDER BY bodies.seq
            LIMIT the_limit
        ) AS found
        INNER JOIN headrace.job_rows AS job ON job.seq = found.seq
        ORDER BY found.seq;
    ELSIF newest_first THEN
        RETURN QUERY
        SELECT job.*
        FROM (
            SELECT bodies.seq
            FROM headrace.job_tags
            INNER JOIN headrace.bodies ON bodies.seq = job_tags.seq
            INNER JOIN headrace.jobs ON jobs.seq = job_tags.seq
            WHERE
                job_tags.tag = driver
                AND (cardinality(the_tags) = 1 OR bodies.tags @> the_tags)
                AND (the_ids IS NULL OR bodies.id = ANY (the_ids))
                AND (the_lanes IS NULL OR bodies.lane = ANY (the_lanes))
                AND (the_states IS NULL OR jobs.state = ANY (the_states))
                AND (NOT only_ended OR jobs.finalized_at IS NOT NULL)
                AND (the_assignee IS NULL OR jobs.assignee = the_assignee)
                AND (created_from IS NULL OR bodies.created_at >= created_from)
                AND (created_before IS NULL OR bodies.created_at < created_before)
                AND (finalized_before IS NULL OR jobs.finalized_at < finalized_before)
                AND (after_seq IS NULL OR job_tags.seq < after_seq)
                AND (after_seq IS NULL OR bodies.seq < after_seq)
                AND (after_seq IS NULL OR jobs.seq < after_seq)
            ORDER BY bodies.seq DESC
            LIMIT the_limit
        ) AS found
        INNER JOIN headrace.job_rows AS job ON job.seq = found.seq
        ORDER BY found.seq DESC;
    ELSE
        RETURN QUERY
        SELECT job.*
        FROM (
            SELECT bodies.seq
            FROM headrace.job_tags
            INNER JOIN headrace.bodies ON bodies.seq = job_tags.seq
            INNER JOIN headrace.jobs ON jobs.seq = job_tags.seq
            WHERE
                job_tags.tag = driver
                AND (cardinality(the_tags) = 1 OR bodies.tags @> the_tags)
                AND (the_ids IS NULL OR bodies.id = ANY (the_ids))
                AND (the_lanes IS NULL OR bodies.lane = ANY (the_lanes))
                AND (the_states IS NULL OR jobs.state = ANY (the_states))
                AND (NOT only_ended OR jobs.finalized_at IS NOT NULL)
                AND (the_assignee IS NULL OR jobs.assignee = the_assignee)
                AND (created_from IS NULL OR bodies.created_at >= created_from)
                AND (created_before IS NULL OR bodies.created_at < created_before)
                AND (finalized_before IS NULL OR jobs.finalized_at < finalized_before)
                AND (after_seq IS NULL OR job_tags.seq > after_seq)
                AND (after_seq IS NULL OR bodies.seq > after_seq)
                AND (after_seq IS NULL OR jobs.seq > after_seq)
            ORDER BY bodies.seq
            LIMIT the_limit
        ) AS found
        INNER JOIN headrace.job_rows AS job ON job.seq = found.seq
        ORDER BY found.seq;
    END IF;
END;
$$;
