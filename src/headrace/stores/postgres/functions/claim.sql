-- name: pick_jobs
-- Lock up to `the_limit` due jobs, in the order priority, run_at, seq, for lease_jobs: the query `claim` puts the two
-- together, since rows that pass through one function more are copied once more.
--
-- Cost. Each lane with waiting jobs is probed by its index for at most `the_reach` of them, one priority after
-- the other, so neither jobs that wait behind those nor jobs that are not due yet are ever looked at. A reach
-- beyond the limit leaves room for jobs that another claim has locked just now.
--
-- Marks. A forgotten open transaction keeps every index entry of jobs that have passed through a lane, and
-- a probe from its beginning walks over all of them. `excess` tells the caller how many that were. When
-- they become many, it says from which (run_at, seq) on each lane is worth reading: the first waiting job
-- it saw there. Jobs that become claimable with a due time in the past (given back, lost, unblocked,
-- submitted late) are `early`, and kept apart in the index, because they can appear before such a mark;
-- the others become visible within moments of their due time. How the caller uses that: marks.py.
CREATE OR REPLACE FUNCTION headrace.pick_jobs(
    the_horizon timestamptz, -- up to when a job counts as due
    the_limit integer,
    the_reach integer,
    the_tenant text, -- NULL: any
    the_queues text[], -- NULL: any
    the_types text[], -- NULL: any
    the_tags text[],
    mark_lanes integer[],
    gap_ends integer[],
    mark_run_ats timestamptz[],
    mark_seqs bigint[],
    early_run_ats timestamptz[], -- NULL: only the other mark is known
    early_seqs bigint[],
    OUT places tid[], -- of the rows that are locked; NULL: none
    OUT picked_states text[],
    OUT excess bigint,
    OUT cut_short boolean -- others held so many jobs that a longer reach may find more
)
LANGUAGE plpgsql
{by_index}
AS $$
#variable_conflict use_column
DECLARE
    driver text;
    walked regclass := 'headrace.jobs_ready'::regclass;
    entries bigint;
    lane_ids integer[];
    priorities smallint[];
BEGIN
    IF cardinality(the_tags) > 0 THEN
        driver := headrace.rarest_waiting(the_tags);
        walked := 'headrace.ready_tags_pkey'::regclass;
    END IF;
    entries := -pg_stat_get_xact_tuples_returned(walked);

    IF cardinality(mark_lanes) = 1 AND pg_sequence_last_value('headrace.lanes_id_seq') <= 32 THEN
        -- To probe so few lanes costs less than to find out which of them have waiting jobs.
        SELECT
            array_agg(lanes.id),
            array_agg(lanes.priority)
        INTO lane_ids, priorities
        FROM headrace.matching_lanes(
            0, gap_ends[1], the_tenant, the_queues, the_types, FALSE
        ) AS lanes;
    ELSE
        SELECT
            array_agg(lanes.id),
            array_agg(lanes.priority),
            array_agg(lanes.mark_run_at),
            array_agg(lanes.mark_seq),
            array_agg(lanes.early_run_at),
            array_agg(lanes.early_seq)
        INTO lane_ids, priorities, mark_run_ats, mark_seqs, early_run_ats, early_seqs
        FROM headrace.open_lanes(
            driver, the_tenant, the_queues, the_types, FALSE, mark_lanes, gap_ends, mark_run_ats,
            mark_seqs, early_run_ats, early_seqs
        ) AS lanes;
    END IF;
    IF lane_ids IS NULL THEN
        RETURN;
    END IF;

    -- The nesting fixes the order of work: priorities from the top, within one the jobs by (run_at, seq),
    -- each locked as it comes, until there are enough. What another claim holds is passed over. A query
    -- that locks or has a LIMIT is not merged into the one around it, so there is no other way to run this.
    WITH candidates AS MATERIALIZED (
        SELECT waiting.*
        FROM generate_series(0, 4) AS level (priority)
        CROSS JOIN LATERAL (
            SELECT line.run_at, line.seq, line.place
            FROM unnest(
                lane_ids, priorities, mark_run_ats, mark_seqs, early_run_ats, early_seqs
            ) AS lane (id, priority, mark_run_at, mark_seq, early_run_at, early_seq)
            CROSS JOIN LATERAL headrace.due_line(
                driver, the_tags, lane.id, the_horizon, the_reach, lane.mark_run_at, lane.mark_seq,
                lane.early_run_at, lane.early_seq
            ) AS line
            WHERE lane.priority = level.priority
            ORDER BY line.run_at, line.seq
            LIMIT the_reach
        ) AS waiting
    ),
    locked AS MATERIALIZED (
        SELECT held.*
        FROM candidates
        CROSS JOIN LATERAL (
            {lock_candidate}
        ) AS held
        LIMIT the_limit
    )
    SELECT
        array_agg(locked.place),
        array_agg(locked.state),
        CASE
            WHEN count(*) < the_limit
                THEN (SELECT count(*) FROM candidates) >= the_reach
            ELSE FALSE
        END
    INTO places, picked_states, cut_short
    FROM locked;
    entries := entries + pg_stat_get_xact_tuples_returned(walked);
    excess := entries - 2 * cardinality(lane_ids) * the_reach;
END;
$$;

-- fragment: lock_candidate
SELECT
    jobs.ctid AS place,
    jobs.state
FROM headrace.jobs
WHERE
    jobs.ctid = candidates.place
    AND jobs.run_at = candidates.run_at
    AND {claimable}
FOR NO KEY UPDATE SKIP LOCKED

-- fragment: claimable
jobs.state IN ('pending', 'retrying', 'lost')

-- name: open_lanes
-- The lanes that a request may take from and that have waiting jobs, due or not, and where to start reading.
-- Merged into the query around it.
--
-- Hops from lane to lane: to the next one with an entry in the index of waiting jobs, then on to the next
-- one at or behind it that matches. So neither lanes without waiting jobs nor lanes of others cost a probe.
-- A hop into a lane walks over all dead entries at its beginning. Lanes with marks (see pick_jobs) are there
-- because of such entries: they count as open, and the hops go only through the gaps between them.
CREATE OR REPLACE FUNCTION headrace.open_lanes(
    the_tag text, -- NULL: any job; otherwise only jobs that have it count as waiting
    the_tenant text,
    the_queues text[],
    the_types text[],
    past_gates boolean,
    mark_lanes integer[], -- in order; the first is 0, before all lanes
    gap_ends integer[], -- the next of them; behind all lanes
    mark_run_ats timestamptz[],
    mark_seqs bigint[],
    early_run_ats timestamptz[],
    early_seqs bigint[]
) RETURNS TABLE (
    id integer,
    priority smallint,
    mark_run_at timestamptz,
    mark_seq bigint,
    early_run_at timestamptz,
    early_seq bigint
)
LANGUAGE sql
STABLE
AS $$
WITH RECURSIVE walk AS (
    SELECT
        start.lane,
        start.gap_end,
        marked.priority,
        start.mark_run_at,
        start.mark_seq,
        start.early_run_at,
        start.early_seq
    FROM unnest(mark_lanes, gap_ends, mark_run_ats, mark_seqs, early_run_ats, early_seqs)
    AS start (lane, gap_end, mark_run_at, mark_seq, early_run_at, early_seq)
    LEFT JOIN LATERAL headrace.matching_lanes(
        start.lane, start.lane + 1, the_tenant, the_queues, the_types, past_gates
    ) AS marked ON start.lane > 0
    UNION ALL
    SELECT
        CASE WHEN matching.id = busy.lane THEN busy.lane ELSE matching.id - 1 END,
        walk.gap_end,
        CASE WHEN matching.id = busy.lane THEN matching.priority END,
        NULL,
        NULL,
        NULL,
        NULL
    FROM walk
    CROSS JOIN LATERAL (
        (
            SELECT jobs.lane
            FROM headrace.jobs
            WHERE
                the_tag IS NULL
                AND jobs.lane > walk.lane
                AND jobs.lane < walk.gap_end
                AND jobs.state IN ('pending', 'retrying', 'lost')
            ORDER BY jobs.lane
            LIMIT 1
        )
        UNION ALL
        (
            SELECT ready_tags.lane
            FROM headrace.ready_tags
            WHERE
                ready_tags.tag = the_tag
                AND ready_tags.lane > walk.lane
                AND ready_tags.lane < walk.gap_end
            ORDER BY ready_tags.lane
            LIMIT 1
        )
    ) AS busy
    CROSS JOIN LATERAL (
        SELECT *
        FROM headrace.matching_lanes(
            busy.lane, walk.gap_end, the_tenant, the_queues, the_types, past_gates
        ) AS lanes
        ORDER BY lanes.id
        LIMIT 1
    ) AS matching
)
SELECT
    walk.lane,
    walk.priority,
    walk.mark_run_at,
    walk.mark_seq,
    walk.early_run_at,
    walk.early_seq
FROM walk
WHERE walk.priority IS NOT NULL
$$;

-- name: matching_lanes
-- The lanes from one id on and below another that a request may take from. Merged into the query around it.
CREATE OR REPLACE FUNCTION headrace.matching_lanes(
    first_lane integer,
    end_lane integer,
    the_tenant text, -- NULL: any
    the_queues text[], -- NULL: any
    the_types text[], -- NULL: any
    past_gates boolean -- queues with a gate, too
) RETURNS TABLE (id integer, priority smallint)
LANGUAGE sql
STABLE
AS $$
SELECT
    lanes.id,
    lanes.priority
FROM headrace.lanes
WHERE
    lanes.id >= first_lane
    AND lanes.id < end_lane
    AND (the_tenant IS NULL OR lanes.tenant = the_tenant)
    AND (the_queues IS NULL OR lanes.queue = ANY (the_queues))
    AND (the_types IS NULL OR lanes.type = ANY (the_types))
    AND NOT EXISTS (
        SELECT FROM headrace.pauses
        WHERE
            pauses.queue = lanes.queue
            AND (pauses.tenant IS NULL OR pauses.tenant = lanes.tenant)
    )
    AND (
        past_gates
        OR NOT EXISTS (
            SELECT FROM headrace.records
            WHERE records.kind = 'gate' AND records.name = lanes.queue
        )
    )
$$;

-- name: due_line
-- waiting_line without a tag, tagged_line with one. Merged into the query around it.
CREATE OR REPLACE FUNCTION headrace.due_line(
    the_tag text, -- NULL: any job
    the_tags text[],
    {line_parameters}
) RETURNS {line_rows}
LANGUAGE sql
STABLE
AS $$
SELECT line.*
FROM headrace.waiting_line(
    the_lane, the_time, the_reach, mark_run_at, mark_seq, early_run_at, early_seq
) AS line
WHERE the_tag IS NULL
UNION ALL
SELECT line.*
FROM headrace.tagged_line(
    the_tag, the_tags, the_lane, the_time, the_reach, mark_run_at, mark_seq, early_run_at, early_seq
) AS line
WHERE the_tag IS NOT NULL
$$;

-- name: waiting_line
-- The due jobs of one lane, the early ones and the others (see pick_jobs): up to so many of each, in order from
-- their mark on. Merged into the query around it.
CREATE OR REPLACE FUNCTION headrace.waiting_line(
    {line_parameters}
) RETURNS {line_rows}
LANGUAGE sql
STABLE
AS $$
({waiting_part} AND {early_part})
UNION ALL
({waiting_part} AND {timely_part})
$$;

-- fragment: waiting_part
SELECT line.run_at, line.seq, line.early, line.ctid
FROM headrace.jobs AS line
WHERE
    line.state IN ('pending', 'retrying', 'lost')

-- name: tagged_line
-- As waiting_line, but only jobs that have all of these tags, of which `the_tag` leads.
CREATE OR REPLACE FUNCTION headrace.tagged_line(
    the_tag text,
    the_tags text[],
    {line_parameters}
) RETURNS {line_rows}
LANGUAGE sql
STABLE
AS $$
({tagged_part} AND {early_part})
UNION ALL
({tagged_part} AND {timely_part})
$$;

-- fragment: tagged_part
SELECT
    line.run_at, line.seq, line.early,
    (SELECT jobs.ctid FROM headrace.jobs WHERE jobs.seq = line.seq)
FROM headrace.ready_tags AS line
WHERE
    line.tag = the_tag
    AND (
        cardinality(the_tags) = 1
        OR (SELECT bodies.tags @> the_tags FROM headrace.bodies WHERE bodies.seq = line.seq)
    )

-- fragment: line_parameters
the_lane integer,
the_time timestamptz,
the_reach integer,
mark_run_at timestamptz, -- NULL: the beginning
mark_seq bigint,
early_run_at timestamptz,
early_seq bigint

-- fragment: early_part
line.early
AND (line.run_at, line.seq) >= (coalesce(early_run_at, '-infinity'), coalesce(early_seq, 0))
AND {due_in_lane}

-- fragment: timely_part
NOT line.early
AND (line.run_at, line.seq) >= (coalesce(mark_run_at, '-infinity'), coalesce(mark_seq, 0))
AND {due_in_lane}

-- fragment: due_in_lane
line.lane = the_lane
AND line.run_at <= the_time
ORDER BY line.run_at, line.seq
LIMIT the_reach

-- fragment: line_rows
TABLE (
    run_at timestamptz,
    seq bigint,
    early boolean,
    place tid -- of its row in jobs
)

-- name: rarest_waiting
-- The tag that the fewest waiting jobs have: it leads a claim, the others are looked up job by job. Past a
-- thousand jobs a tag is common, and how common does not matter.
CREATE OR REPLACE FUNCTION headrace.rarest_waiting(the_tags text[]) RETURNS text
LANGUAGE plpgsql
STABLE
-- Runs with the settings of its caller.
AS $$
BEGIN
    IF cardinality(the_tags) < 2 THEN
        RETURN the_tags[1];
    END IF;
    RETURN (
        SELECT given.tag
        FROM unnest(the_tags) AS given (tag)
        ORDER BY
            (
                SELECT count(*)
                FROM (
                    SELECT FROM headrace.ready_tags WHERE ready_tags.tag = given.tag LIMIT 1000
                ) AS capped
            )
        LIMIT 1
    );
END;
$$;

-- name: lease_jobs
-- Lease the jobs that a claim has locked, in this order, and log it.
-- What it writes equals lifecycle.apply(job, Claim(...), now), field by field: it must be made here, where
-- picking and leasing are one step. A test compares the two.
CREATE OR REPLACE FUNCTION headrace.lease_jobs(
    places tid[],
    picked_states text[],
    the_worker text,
    the_time timestamptz,
    the_nonce text,
    own_lease boolean, -- lease until `the_lease`, whatever the job says
    the_lease timestamptz,
    the_excess bigint, -- only passed on
    cut_short boolean -- say so by a row without a seq at the end
) RETURNS SETOF headrace.claimed_job
LANGUAGE plpgsql
{by_index}
AS $$
#variable_conflict use_column
DECLARE
    answer headrace.claimed_job;
BEGIN
    IF places IS NOT NULL THEN
        RETURN QUERY
        WITH leased AS (
            UPDATE headrace.jobs SET
                state = 'running',
                version = jobs.version + 1,
                updated_at = {stamp}, -- a job's own time never runs back
                attempt = jobs.attempt + 1,
                token = (jobs.attempt + 1)::text || '.' || the_nonce,
                lease_until = CASE
                    WHEN own_lease THEN the_lease
                    ELSE the_time + jobs.lease_us * interval '1 microsecond'
                END + CASE
                    -- no lease counts from a clock that was set back since (clock.STEP_SECONDS)
                    WHEN jobs.updated_at - the_time > interval '5 seconds' THEN interval '0'
                    ELSE {stamp} - the_time
                END,
                assignee = the_worker,
                assigned_at = {stamp},
                -- a job that is claimed ahead of its time has not waited
                scheduled_at = least(greatest(jobs.run_at, jobs.updated_at), {stamp}),
                started_at = coalesce(jobs.started_at, {stamp})
            FROM unnest(places, picked_states) AS pick (place, state)
            CROSS JOIN headrace.bodies
            WHERE jobs.ctid = pick.place AND bodies.seq = jobs.seq
            RETURNING
                {claimed.from_tables},
                jobs.early,
                jobs.state,
                pick.state AS state_before
        ),
        logged AS (
            INSERT INTO headrace.events (
                at, run_at, job_seq, lane, version, attempt, failures, losses, lease_until,
                wait_us, job_id, kind, before, after, worker
            )
            SELECT
                leased.updated_at, leased.run_at, leased.seq, leased.lane, leased.version,
                leased.attempt, leased.failures, leased.losses, leased.lease_until,
                (date_part('epoch', leased.updated_at - leased.scheduled_at) * 1000000)::bigint,
                leased.id, 'leased', leased.state_before, leased.state, the_worker
            FROM leased
        ),
        untagged AS (
            -- Row by row, for the LIMIT: where statistics say that there are hardly any, a join would begin
            -- with all of them.
            DELETE FROM headrace.ready_tags
            USING leased
            CROSS JOIN LATERAL unnest(leased.tags) AS had (tag)
            CROSS JOIN LATERAL (
                SELECT line.ctid AS place
                FROM headrace.ready_tags AS line
                WHERE
                    line.tag = had.tag
                    AND line.lane = leased.lane
                    AND line.early = leased.early
                    AND line.run_at = leased.run_at
                    AND line.seq = leased.seq
                LIMIT 1
            ) AS found
            WHERE leased.tags <> '{}' AND ready_tags.ctid = found.place
        )
        SELECT
            {claimed.from_leased}, leased.early, the_excess
        FROM leased;
    END IF;
    IF cut_short THEN
        RETURN NEXT answer;
    END IF;
END;
$$;

-- fragment: stamp
greatest(the_time, jobs.updated_at)

-- name: claim_shares
-- Lease up to so many due jobs of each of these lanes, in the order of the shares, and store the gates with
-- their new bodies, if all gates are as they were read. Whoever else claims by one of the gates waits here
-- for its row, so there is always one at a time behind a gate. What it leases is what a claim leases.
CREATE OR REPLACE FUNCTION headrace.claim_shares(
    the_worker text,
    the_time timestamptz,
    the_limit integer,
    the_reach integer, -- look at so many more, in place of jobs that others hold
    the_nonce text,
    the_tenant text, -- NULL: any
    the_queues text[], -- NULL: any
    the_types text[], -- NULL: any
    the_tags text[],
    own_lease boolean, -- lease until `the_lease`, whatever the job says
    the_lease timestamptz,
    gate_kinds text[],
    gate_names text[],
    gate_versions bigint[],
    gate_bodies bytea[],
    share_lanes integer[],
    share_jobs integer[],
    -- one element per share, NULL: read its lane from the beginning; see pick_jobs
    mark_run_ats timestamptz[],
    mark_seqs bigint[],
    early_run_ats timestamptz[],
    early_seqs bigint[],
    the_horizon timestamptz -- up to when a job counts as due
) RETURNS SETOF headrace.claimed_job
-- One row without a seq says: a gate had moved on, and nothing was written.
LANGUAGE plpgsql
{by_index}
AS $$
#variable_conflict use_column
DECLARE
    driver text := headrace.rarest_waiting(the_tags);
    places tid[];
    picked_states text[];
    moved_on headrace.claimed_job;
BEGIN
    IF cardinality(gate_names) > 0
        AND NOT headrace.put_records(gate_kinds, gate_names, gate_versions, gate_bodies)
    THEN
        RETURN NEXT moved_on;
        RETURN;
    END IF;
    -- The nesting fixes the order of work: see pick_jobs. A lane may come more than once: its later shares
    -- go over what the earlier ones have locked.
    WITH shares AS MATERIALIZED (
        SELECT
            share.lane,
            share.jobs,
            sum(share.jobs) OVER (PARTITION BY share.lane ORDER BY share.position)
            - share.jobs AS jobs_before,
            share.mark_run_at,
            share.mark_seq,
            share.early_run_at,
            share.early_seq
        FROM unnest(
            share_lanes, share_jobs, mark_run_ats, mark_seqs, early_run_ats, early_seqs
        ) WITH ORDINALITY AS share (
            lane, jobs, mark_run_at, mark_seq, early_run_at, early_seq, position
        )
        CROSS JOIN LATERAL headrace.matching_lanes(
            share.lane, share.lane + 1, the_tenant, the_queues, the_types, TRUE
        )
        ORDER BY share.position
    ),
    locked AS MATERIALIZED (
        SELECT mine.*
        FROM shares
        CROSS JOIN LATERAL (
            SELECT held.*
            FROM (
                SELECT line.run_at, line.seq, line.place
                FROM headrace.due_line(
                    driver, the_tags, shares.lane, the_horizon,
                    least(shares.jobs_before + shares.jobs + the_reach, 2147483647)::integer,
                    shares.mark_run_at, shares.mark_seq, shares.early_run_at, shares.early_seq
                ) AS line
                ORDER BY line.run_at, line.seq
            ) AS candidates
            CROSS JOIN LATERAL (
                {lock_candidate}
            ) AS held
            LIMIT shares.jobs
            OFFSET shares.jobs_before
        ) AS mine
        LIMIT the_limit
    )
    SELECT
        array_agg(locked.place),
        array_agg(locked.state)
    INTO places, picked_states
    FROM locked;
    RETURN QUERY
    SELECT *
    FROM headrace.lease_jobs(
        places, picked_states, the_worker, the_time, the_nonce, own_lease, the_lease, NULL, FALSE
    );
END;
$$;

-- name: lane_heads
-- The lanes with due jobs that match: of the early ones and the others each (see pick_jobs) the first, and
-- how many there are, counted up to the limit. A row without a lane at the end has the number of index
-- entries that were read.
CREATE OR REPLACE FUNCTION headrace.lane_heads(
    the_horizon timestamptz, -- up to when a job counts as due
    the_limit integer,
    the_tenant text, -- NULL: any
    the_queues text[], -- NULL: any
    the_types text[], -- NULL: any
    the_tags text[],
    mark_lanes integer[],
    gap_ends integer[],
    mark_run_ats timestamptz[],
    mark_seqs bigint[],
    early_run_ats timestamptz[],
    early_seqs bigint[]
) RETURNS TABLE (lane integer, early boolean, run_at timestamptz, seq bigint, jobs bigint)
LANGUAGE plpgsql
{by_index}
AS $$
#variable_conflict use_column
DECLARE
    driver text := headrace.rarest_waiting(the_tags);
    walked regclass := CASE
        WHEN driver IS NULL THEN 'headrace.jobs_ready'::regclass
        ELSE 'headrace.ready_tags_pkey'::regclass
    END;
    entries bigint := pg_stat_get_xact_tuples_returned(walked);
BEGIN
    RETURN QUERY
    SELECT
        open_lanes.id,
        head.early,
        head.run_at,
        head.seq,
        head.jobs
    FROM headrace.open_lanes(
        driver, the_tenant, the_queues, the_types, TRUE, mark_lanes, gap_ends, mark_run_ats,
        mark_seqs, early_run_ats, early_seqs
    ) AS open_lanes
    CROSS JOIN LATERAL (
        SELECT
            line.early,
            min(line.run_at) AS run_at,
            (array_agg(line.seq ORDER BY line.run_at, line.seq))[1] AS seq,
            count(*) AS jobs
        FROM headrace.due_line(
            driver, the_tags, open_lanes.id, the_horizon, the_limit, open_lanes.mark_run_at,
            open_lanes.mark_seq, open_lanes.early_run_at, open_lanes.early_seq
        ) AS line
        GROUP BY line.early
    ) AS head;
    RETURN QUERY
    SELECT
        NULL::integer,
        NULL::boolean,
        NULL::timestamptz,
        NULL::bigint,
        pg_stat_get_xact_tuples_returned(walked) - entries;
END;
$$;

-- name: next_due
-- When the next job of the lanes that match becomes due; NULL: none waits for its time. One index entry per
-- lane: what is due already, and what is left of it in the index, is passed over.
CREATE OR REPLACE FUNCTION headrace.next_due(
    the_time timestamptz,
    the_tenant text, -- NULL: any
    the_queues text[], -- NULL: any
    the_types text[], -- NULL: any
    mark_lanes integer[],
    gap_ends integer[],
    mark_run_ats timestamptz[],
    mark_seqs bigint[],
    early_run_ats timestamptz[],
    early_seqs bigint[]
) RETURNS timestamptz
LANGUAGE plpgsql
STABLE
{by_index}
AS $$
BEGIN
    RETURN (
        SELECT min(later.run_at)
        FROM headrace.open_lanes(
            NULL, the_tenant, the_queues, the_types, TRUE, mark_lanes, gap_ends, mark_run_ats,
            mark_seqs, early_run_ats, early_seqs
        ) AS open_lanes
        -- An early job (see pick_jobs) is due, unless the clock was set back since.
        CROSS JOIN (VALUES (FALSE), (TRUE)) AS kind (early)
        CROSS JOIN LATERAL (
            SELECT jobs.run_at
            FROM headrace.jobs
            WHERE
                jobs.lane = open_lanes.id
                AND jobs.early = kind.early
                AND jobs.run_at > the_time
                AND jobs.state IN ('pending', 'retrying', 'lost')
            ORDER BY jobs.run_at, jobs.seq
            LIMIT 1
        ) AS later
    );
END;
$$;

-- name: held_leases
-- How many leases on these queues hold, by tenant, queue and limit key. Reads the leased jobs and no others.
CREATE OR REPLACE FUNCTION headrace.held_leases(the_time timestamptz, the_queues text[])
RETURNS TABLE (tenant text, queue text, limit_key text, jobs bigint)
LANGUAGE plpgsql
STABLE
{by_index}
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH held AS MATERIALIZED (
        SELECT
            jobs.lane,
            count(*) AS jobs
        FROM headrace.jobs
        WHERE
            jobs.state IN ('running', 'cancelling')
            AND (jobs.lease_until IS NULL OR jobs.lease_until > the_time)
        GROUP BY jobs.lane
    )
    SELECT
        lanes.tenant,
        lanes.queue,
        lanes.limit_key,
        sum(held.jobs)::bigint
    FROM held
    INNER JOIN headrace.lanes ON lanes.id = held.lane
    WHERE lanes.queue = ANY (the_queues)
    GROUP BY lanes.tenant, lanes.queue, lanes.limit_key;
END;
$$;
