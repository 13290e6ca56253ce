-- Which of these jobs still have events.
SELECT json_group_array(wanted.value)
FROM json_each(?) AS wanted
WHERE EXISTS (SELECT 1 FROM events WHERE events.job_seq = wanted.value);
