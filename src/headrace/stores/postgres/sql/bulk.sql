-- name: load_begin
SELECT {calls.load_begin}

-- name: load_seqs
-- As COPY takes them: one after the other, without their lengths. And the moment from which on a due time is in
-- time: see pick_jobs.
SELECT
    string_agg(int8send(nextval('headrace.job_seqs')), ''::bytea),
    clock_timestamp() - interval '500 ms'
FROM generate_series(1, $1::integer)

-- name: load_stage
SELECT headrace.load_stage($1::text, $2::text::timestamptz)

-- name: load_staged
SELECT {calls.load_staged}

-- name: load_jobs
SELECT
    created,
    repeated
FROM headrace.load_jobs($1::text::timestamptz, $2::boolean)

-- name: load_sweep
SELECT {calls.load_sweep}
