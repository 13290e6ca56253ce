-- As heads.sql, along the rarest of the wanted tags; the others are looked up one by one.
SELECT
    json_group_array(
        json_array(
            json(
                (
                    SELECT json_array(min(due.run_at), count(*))
                    FROM (
                        SELECT ready_tags.run_at
                        FROM ready_tags
                        WHERE
                            ready_tags.tag = :tag
                            AND ready_tags.lane = wanted.value
                            AND ready_tags.run_at <= :now
                            AND NOT EXISTS (
                                SELECT 1
                                FROM json_each(:others) AS other
                                WHERE NOT EXISTS (
                                    SELECT 1
                                    FROM job_tags
                                    WHERE
                                        job_tags.tag = other.value
                                        AND job_tags.seq = ready_tags.seq
                                )
                            )
                        ORDER BY ready_tags.run_at, ready_tags.seq
                        LIMIT :limit
                    ) AS due
                )
            ),
            wanted.value
        )
    )
FROM json_each(:lanes) AS wanted;
