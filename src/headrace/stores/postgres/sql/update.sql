-- name: update
SELECT {calls.update_jobs}

-- name: rewrite
SELECT {calls.rewrite_jobs}

-- name: delete
SELECT {calls.delete_jobs}
