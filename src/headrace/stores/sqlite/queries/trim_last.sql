-- The last event that may go, in log order: none after :upto, none of :before or later, no more than :limit.
-- NULL: there is none. Numbers have no gaps.
WITH oldest AS MATERIALIZED (
    SELECT seq, at FROM events WHERE seq <= :upto ORDER BY seq LIMIT :limit
)

SELECT coalesce((SELECT min(seq) - 1 FROM oldest WHERE at >= :before), (SELECT max(seq) FROM oldest));
