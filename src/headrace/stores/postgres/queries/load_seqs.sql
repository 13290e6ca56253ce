-- As COPY takes them: one after the other, without their lengths.
SELECT string_agg(int8send(nextval('headrace.job_seqs')), ''::bytea)
FROM generate_series(1, $1::integer)
