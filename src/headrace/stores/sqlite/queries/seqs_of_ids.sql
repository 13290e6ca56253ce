-- The seqs of those ids that are stored.
SELECT json_group_array(jobs.seq)
FROM json_each(?) AS wanted
CROSS JOIN jobs ON jobs.id = wanted.value;
