SELECT
    headrace.annotate_job(
        $1::text, $2::text, $3::double precision, $4::text, $5::bytea, $6::bytea, $7::timestamptz
    )
