SELECT
    headrace.rewrite_jobs(
        $1::text[], $2::integer[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bytea[], $7::text[]
    )
