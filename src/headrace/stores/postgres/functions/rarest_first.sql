-- The tags, the rarest first. Past a thousand jobs a tag is common, and how common does not matter.
CREATE OR REPLACE FUNCTION headrace.rarest_first(the_tags text[]) RETURNS text[]
LANGUAGE plpgsql
STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
BEGIN
    IF cardinality(the_tags) < 2 THEN
        RETURN the_tags;
    END IF;
    RETURN ARRAY(
        SELECT given.tag
        FROM unnest(the_tags) AS given (tag)
        ORDER BY
            (
                SELECT count(*)
                FROM (
                    SELECT FROM headrace.job_tags WHERE job_tags.tag = given.tag LIMIT 1000
                ) AS capped
            )
    );
END;
$$;
