-- Payloads in another form.
UPDATE payloads
SET payload = new.column1
FROM (
    VALUES (?, ?)
) AS new
WHERE payloads.seq = new.column2;
