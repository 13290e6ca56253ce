-- Notes: what is not said (NULL) stays as it is.
INSERT INTO notes (seq, progress, progress_note, checkpoint, log) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (seq) DO UPDATE
SET
    progress = coalesce(excluded.progress, progress),
    progress_note = coalesce(excluded.progress_note, progress_note),
    checkpoint = coalesce(excluded.checkpoint, checkpoint),
    log = coalesce(excluded.log, log);
