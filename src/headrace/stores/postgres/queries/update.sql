SELECT
    headrace.update_jobs(
        $1::bigint[], $2::text[], $3::integer[], $4::integer[], $5::text[], $6::integer[],
        $7::integer[], $8::text[], $9::text[], $10::text[], $11::integer[], $12::timestamptz[],
        $13::bytea[]
    )
