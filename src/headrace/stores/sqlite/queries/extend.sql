-- A heartbeat: nothing but the lease changes, neither version nor time of update.
UPDATE jobs SET lease_until = ? WHERE seq = ?;
