-- The queues that have claimable jobs: one step of the index each, however many lanes they have.
WITH RECURSIVE waiting (queue) AS (
    SELECT
        (
            SELECT lanes.queue
            FROM lanes INDEXED BY lanes_claimable
            WHERE lanes.pending + lanes.retrying + lanes.lost > 0
            ORDER BY lanes.queue
            LIMIT 1
        )
    UNION ALL
    SELECT
        (
            SELECT lanes.queue
            FROM lanes INDEXED BY lanes_claimable
            WHERE
                lanes.pending + lanes.retrying + lanes.lost > 0
                AND lanes.queue > waiting.queue
            ORDER BY lanes.queue
            LIMIT 1
        )
    FROM waiting
    WHERE waiting.queue IS NOT NULL
)

SELECT queue FROM waiting WHERE queue IS NOT NULL;
