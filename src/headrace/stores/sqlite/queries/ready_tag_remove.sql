-- A job with a tag is not claimable any more, or not at that time.
DELETE FROM ready_tags WHERE tag = ? AND lane = ? AND run_at = ? AND seq = ?;
