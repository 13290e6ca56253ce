-- Make jobs of all rows in load_rows, with their events, tags and keys. A row whose job is stored already, or
-- whose key is held, is left out and counted as repeated.
--
-- Mostly all rows are new, so they are inserted as they are. Where that clashes it is undone, the rows that are
-- stored already are put aside, and the rest is tried again: whatever another transaction was storing when we
-- clashed with it is stored by then, or gone.
--
-- Every job is `early` (see pick_jobs): when this transaction commits is not known here.
CREATE OR REPLACE FUNCTION headrace.load_jobs(
    the_time timestamptz,
    tagged boolean, -- some groups have tags
    OUT created bigint,
    OUT repeated bigint
)
LANGUAGE plpgsql
-- The groups are few, the rows many and in the order of the indexes.
SET enable_nestloop = off
SET enable_mergejoin = off
AS $$
DECLARE
    given bigint;
    keyed boolean;
    tries integer := 0;
BEGIN
    SELECT
        count(*),
        count(load_rows.key) > 0
    INTO given, keyed
    FROM pg_temp.load_rows;
    IF keyed THEN
        -- Of several rows with one key, the first.
        DELETE FROM pg_temp.load_rows
        WHERE seq IN (
            SELECT numbered.seq
            FROM (
                SELECT
                    load_rows.seq,
                    row_number() OVER (PARTITION BY load_rows.id ORDER BY load_rows.seq) AS nth
                FROM pg_temp.load_rows
                WHERE load_rows.key IS NOT NULL
            ) AS numbered
            WHERE numbered.nth > 1
        );
    END IF;
    LOOP
        BEGIN
            IF keyed THEN
                PERFORM headrace.load_keys(the_time);
            END IF;
            created := headrace.load_insert(tagged);
            EXIT;
        EXCEPTION
            WHEN unique_violation THEN
                tries := tries + 1;
                IF tries > 20 THEN
                    RAISE;
                END IF;
        END;
        PERFORM headrace.load_forget_stored();
    END LOOP;
    repeated := given - created;
END;
$$;
