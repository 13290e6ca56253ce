-- The queues that a plain claim passes over, for one tenant or (NULL) for all: paused or gated. One
-- query, since every claim asks.
SELECT queue, tenant FROM pauses
UNION ALL
SELECT name, NULL FROM records WHERE kind = ?;
