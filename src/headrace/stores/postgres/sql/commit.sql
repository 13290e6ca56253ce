-- name: commit
SELECT * FROM {calls.commit_changes}

-- name: complete
SELECT * FROM {calls.complete_jobs}
