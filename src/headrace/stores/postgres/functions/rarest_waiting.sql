-- The tag that the fewest waiting jobs have: it leads a claim, the others are looked up job by job. Past a
-- thousand jobs a tag is common, and how common does not matter.
CREATE OR REPLACE FUNCTION headrace.rarest_waiting(the_tags text[]) RETURNS text
LANGUAGE plpgsql
STABLE
-- Runs with the settings of its caller.
AS $$
BEGIN
    IF cardinality(the_tags) < 2 THEN
        RETURN the_tags[1];
    END IF;
    RETURN (
        SELECT given.tag
        FROM unnest(the_tags) AS given (tag)
        ORDER BY
            (
                SELECT count(*)
                FROM (
                    SELECT FROM headrace.ready_tags WHERE ready_tags.tag = given.tag LIMIT 1000
                ) AS capped
            )
        LIMIT 1
    );
END;
$$;
