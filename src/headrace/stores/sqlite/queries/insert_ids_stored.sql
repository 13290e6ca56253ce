-- Which of these ids are stored already.
SELECT jobs.id
FROM json_each(?) AS wanted
CROSS JOIN jobs ON jobs.id = wanted.value;
