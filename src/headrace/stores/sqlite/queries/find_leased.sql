-- Candidates: leased jobs. There are never more than the workers can hold.
SELECT jobs.seq
FROM jobs INDEXED BY jobs_leased
WHERE jobs.state IN ('running', 'cancelling')
LIMIT :limit;
