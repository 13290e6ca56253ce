-- name: commit
SELECT * FROM {calls.commit_changes}
