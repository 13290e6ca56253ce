-- name: insert
SELECT {calls.insert_jobs}

-- name: insert_kin
SELECT {calls.grown_kin}
