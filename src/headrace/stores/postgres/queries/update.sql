SELECT
    headrace.update_jobs(
        $1::bigint[], $2::integer[], $3::integer[], $4::integer[], $5::text[], $6::text[],
        $7::text[], $8::integer[], $9::timestamptz[], $10::bytea[]
    )
