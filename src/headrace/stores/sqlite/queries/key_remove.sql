-- A job is deleted: its key goes with it, unless another job holds it by now.
DELETE FROM keys WHERE tenant = ? AND queue = ? AND type = ? AND key = ? AND job_id = ?;
