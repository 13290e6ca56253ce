-- name: get_jobs
-- Those that exist.
CREATE OR REPLACE FUNCTION headrace.get_jobs(the_ids text[]) RETURNS SETOF headrace.job_rows
LANGUAGE plpgsql
STABLE
{by_index}
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT job.* FROM headrace.job_rows AS job WHERE job.id = ANY (the_ids);
END;
$$;

-- name: find_jobs
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
            FROM {find_any}
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
            FROM {find_any}
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
            FROM {find_tagged}
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
            FROM {find_tagged}
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

-- fragment: find_any
headrace.bodies
INNER JOIN headrace.jobs ON jobs.seq = bodies.seq
WHERE
    {find_filters}

-- fragment: find_tagged
headrace.job_tags
INNER JOIN headrace.bodies ON bodies.seq = job_tags.seq
INNER JOIN headrace.jobs ON jobs.seq = job_tags.seq
WHERE
    job_tags.tag = driver
    AND (cardinality(the_tags) = 1 OR bodies.tags @> the_tags)
    AND {find_filters}

-- fragment: find_filters
(the_ids IS NULL OR bodies.id = ANY (the_ids))
    AND (the_lanes IS NULL OR bodies.lane = ANY (the_lanes))
    AND (the_states IS NULL OR jobs.state = ANY (the_states))
    AND (NOT only_ended OR jobs.finalized_at IS NOT NULL)
    AND (the_assignee IS NULL OR jobs.assignee = the_assignee)
    AND (created_from IS NULL OR bodies.created_at >= created_from)
    AND (created_before IS NULL OR bodies.created_at < created_before)
    AND (finalized_before IS NULL OR jobs.finalized_at < finalized_before)

-- name: rarest_first
-- The tags, the rarest first. Past a thousand jobs a tag is common, and how common does not matter.
CREATE OR REPLACE FUNCTION headrace.rarest_first(the_tags text[]) RETURNS text[]
LANGUAGE plpgsql
STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
BEGIN
    IF cardinality(the_tags) < 2 THEN
        RETURN the_tags;
    END IF;
    RETURN ARRAY(
        SELECT given.tag
        FROM unnest(the_tags) AS given (tag)
        ORDER BY
            (
                SELECT count(*)
                FROM (
                    SELECT FROM headrace.job_tags WHERE job_tags.tag = given.tag LIMIT 1000
                ) AS capped
            )
    );
END;
$$;

-- name: count_jobs
-- How many jobs there are, by lane and state: in all, of those not due yet, and the sum of their failures. Only
-- those of a tenant and queue together are right: see tallies.
-- With tags it reads every job that has the rarest of them.
CREATE OR REPLACE FUNCTION headrace.count_jobs(
    the_time timestamptz,
    the_lanes integer[], -- NULL: all
    the_tags text[]
) RETURNS TABLE (lane integer, state text, jobs bigint, delayed bigint, failures bigint)
LANGUAGE plpgsql
-- Planned for the lanes that are given: there may be thousands of them.
SET plan_cache_mode = force_custom_plan
AS $$
#variable_conflict use_column
DECLARE
    driver text := (headrace.rarest_first(the_tags))[1];
    -- Not where the tables were restored on a server that counts its transactions from another number.
    is_tallied boolean := coalesce(
        (SELECT tally_place.xid FROM headrace.tally_place) <= pg_snapshot_xmax(pg_current_snapshot()), TRUE
    );
BEGIN
    IF cardinality(the_tags) = 0 AND is_tallied THEN
        RETURN QUERY
        SELECT * FROM headrace.tallied_jobs(the_time, the_lanes);
    ELSIF cardinality(the_tags) = 0 THEN
        RETURN QUERY
        SELECT
            {tallies}
        FROM headrace.jobs
        WHERE the_lanes IS NULL OR jobs.lane = ANY (the_lanes)
        GROUP BY jobs.lane, jobs.state;
    ELSE
        RETURN QUERY
        SELECT
            {tallies}
        FROM headrace.job_tags
        INNER JOIN headrace.bodies ON bodies.seq = job_tags.seq
        INNER JOIN headrace.jobs ON jobs.seq = job_tags.seq
        WHERE
            job_tags.tag = driver
            AND bodies.tags @> the_tags
            AND (the_lanes IS NULL OR jobs.lane = ANY (the_lanes))
        GROUP BY jobs.lane, jobs.state;
    END IF;
END;
$$;

-- name: tallied_jobs
-- The same without tags, from what was tallied, the events since, and of the jobs themselves only those that are not
-- due, lane by lane, and those with failures.
CREATE OR REPLACE FUNCTION headrace.tallied_jobs(
    the_time timestamptz,
    the_lanes integer[]
) RETURNS TABLE (lane integer, state text, jobs bigint, delayed bigint, failures bigint)
LANGUAGE plpgsql
STABLE
{by_index}
-- Few events are read, and the planner cannot know: starting processes for them would take all the time.
SET max_parallel_workers_per_gather = 0
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH RECURSIVE open_lanes (lane) AS (
        (
            SELECT jobs.lane
            FROM headrace.jobs
            WHERE jobs.state IN ('pending', 'retrying', 'lost')
            ORDER BY jobs.lane, jobs.early, jobs.run_at, jobs.seq
            LIMIT 1
        )
        UNION ALL
        SELECT (
            SELECT jobs.lane
            FROM headrace.jobs
            WHERE jobs.state IN ('pending', 'retrying', 'lost') AND jobs.lane > open_lanes.lane
            ORDER BY jobs.lane, jobs.early, jobs.run_at, jobs.seq
            LIMIT 1
        )
        FROM open_lanes
        WHERE open_lanes.lane IS NOT NULL
    )
    SELECT
        told.lane,
        told.state,
        sum(told.jobs)::bigint,
        sum(told.delayed)::bigint,
        sum(told.failures)::bigint
    FROM (
        SELECT tallies.lane, tallies.state, tallies.jobs, 0 AS delayed, 0 AS failures
        FROM headrace.tallies
        UNION ALL
        SELECT changed.lane, changed.state, changed.jobs, 0, 0
        FROM (
            {untold}
            events.xid >= coalesce((SELECT tally_place.xid FROM headrace.tally_place), '0')
            {untold_deleted}
        ) AS changed
        UNION ALL
        SELECT late.lane, late.state, 0, late.jobs, 0
        FROM open_lanes
        CROSS JOIN (VALUES (TRUE), (FALSE)) AS half (early)
        CROSS JOIN LATERAL (
            SELECT jobs.lane, jobs.state, count(*) AS jobs
            FROM headrace.jobs
            WHERE
                jobs.lane = open_lanes.lane
                AND jobs.early = half.early
                AND jobs.run_at > the_time
                AND jobs.state IN ('pending', 'retrying', 'lost')
            GROUP BY jobs.lane, jobs.state
        ) AS late
        UNION ALL
        SELECT jobs.lane, jobs.state, 0, 0, sum(jobs.failures)
        FROM headrace.jobs
        WHERE jobs.failures > 0
        GROUP BY jobs.lane, jobs.state
    ) AS told
    WHERE the_lanes IS NULL OR told.lane = ANY (the_lanes)
    GROUP BY told.lane, told.state;
END;
$$;

-- fragment: untold
-- What events say of how many jobs are in a state. The caller says which events.
SELECT moved.lane, moved.state, sum(moved.jobs)::bigint AS jobs
FROM headrace.events
CROSS JOIN LATERAL (
    VALUES (events.lane, events.after, 1), (events.lane, events.before, -1)
) AS moved (lane, state, jobs)
WHERE
    moved.state IS NOT NULL
    AND

-- fragment: untold_deleted
-- The end of it, and those that were deleted.
GROUP BY moved.lane, moved.state
UNION ALL
SELECT untallied.lane, untallied.state, -untallied.jobs
FROM headrace.untallied

-- name: fold_tallies
-- Tally what transactions have told that are over. Of two at once the later one waits, and finds little left, or
-- (`if_free`) leaves it to the other.
CREATE OR REPLACE FUNCTION headrace.fold_tallies(if_free boolean) RETURNS void
LANGUAGE plpgsql
{by_index}
AS $$
#variable_conflict use_column
DECLARE
    from_xid xid8;
    upto_xid xid8;
BEGIN
    INSERT INTO headrace.tally_place (xid) VALUES ('0') ON CONFLICT DO NOTHING;
    IF if_free THEN
        SELECT tally_place.xid INTO from_xid FROM headrace.tally_place FOR UPDATE SKIP LOCKED;
    ELSE
        SELECT tally_place.xid INTO from_xid FROM headrace.tally_place FOR UPDATE;
    END IF;
    upto_xid := pg_snapshot_xmin(pg_current_snapshot());
    IF from_xid IS NULL OR from_xid >= upto_xid THEN
        RETURN;
    END IF;
    INSERT INTO headrace.tallies AS known (lane, state, jobs)
    SELECT changed.lane, changed.state, sum(changed.jobs)::bigint
    FROM (
        {untold}
        events.xid >= from_xid AND events.xid < upto_xid
        {untold_deleted}
        WHERE untallied.xid < upto_xid
    ) AS changed
    GROUP BY changed.lane, changed.state
    HAVING sum(changed.jobs) <> 0
    ON CONFLICT (lane, state) DO UPDATE SET jobs = known.jobs + excluded.jobs;
    DELETE FROM headrace.untallied WHERE untallied.xid < upto_xid;
    UPDATE headrace.tally_place SET xid = upto_xid;
END;
$$;

-- fragment: tallies
jobs.lane,
jobs.state,
count(*),
count(*) FILTER (
    WHERE jobs.run_at > the_time AND jobs.state IN ('pending', 'retrying', 'lost')
),
sum(jobs.failures)

-- name: held_keys
-- The jobs that hold these keys, with the position of the key in the arguments.
CREATE OR REPLACE FUNCTION headrace.held_keys(
    the_tenants text[],
    the_queues text[],
    the_types text[],
    the_keys text[],
    the_time timestamptz
) RETURNS TABLE ("position" bigint, job_id text)
LANGUAGE plpgsql
STABLE
{by_index}
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT
        wanted.position,
        keys.job_id
    FROM unnest(the_tenants, the_queues, the_types, the_keys)
    WITH ORDINALITY AS wanted (tenant, queue, type, key, position)
    INNER JOIN headrace.keys
        ON
            keys.tenant = wanted.tenant
            AND keys.queue = wanted.queue
            AND keys.type = wanted.type
            AND keys.key = wanted.key
    WHERE keys.expires_at IS NULL OR keys.expires_at > the_time;
END;
$$;
