-- Forget the deleted jobs whose last event is about to go: nothing is left to be found by their ids.
DELETE FROM deleted_jobs
WHERE
    (id, seq) IN (
        SELECT gone.job_id, gone.job_seq
        FROM events AS gone
        WHERE
            gone.seq <= :last
            AND NOT EXISTS (
                SELECT 1 FROM events WHERE events.job_seq = gone.job_seq AND events.seq > :last
            )
    );
