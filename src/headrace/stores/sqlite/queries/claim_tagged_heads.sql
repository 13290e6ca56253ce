-- As claim_heads.sql, among the jobs that have the tag. Whether they have the others is not asked.
SELECT
    json_group_array(
        json_array(
            json(
                (
                    SELECT json_array(ready_tags.run_at, ready_tags.seq)
                    FROM ready_tags
                    WHERE ready_tags.tag = :tag AND ready_tags.lane = wanted.value
                    ORDER BY ready_tags.run_at, ready_tags.seq
                    LIMIT 1
                )
            ),
            wanted.value
        )
    )
FROM json_each(:lanes) AS wanted;
