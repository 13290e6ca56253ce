DELETE FROM headrace.pauses
WHERE queue = $1::text AND tenant IS NOT DISTINCT FROM $2::text
RETURNING queue
