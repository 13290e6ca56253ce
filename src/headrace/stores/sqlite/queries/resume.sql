-- End a pause: that of one tenant, or (NULL) that of all.
DELETE FROM pauses WHERE queue = ? AND tenant IS ?;
