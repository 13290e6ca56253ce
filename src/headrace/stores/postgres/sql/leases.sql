-- name: extend
SELECT * FROM {calls.extend_leases}

-- name: annotate
SELECT {calls.annotate_job}

-- name: lapsed
SELECT * FROM {calls.lapsed_jobs}

-- name: outlived
SELECT * FROM {calls.outlived_jobs}
