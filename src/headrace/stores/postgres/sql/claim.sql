-- name: claim
SELECT leased.*
FROM headrace.pick_jobs(
    $18::timestamptz, $3::integer, $4::integer, $6::text, $7::text[], $8::text[], $9::text[],
    $12::integer[], $13::integer[], $14::timestamptz[], $15::bigint[], $16::timestamptz[],
    $17::bigint[]
) AS pick
CROSS JOIN LATERAL headrace.lease_jobs(
    pick.places, pick.picked_states, $1::text, $2::timestamptz, $5::text, $10::boolean, $11::timestamptz, pick.excess, pick.cut_short
) AS leased

-- name: claim_shares
SELECT * FROM {calls.claim_shares}

-- name: heads
SELECT * FROM {calls.lane_heads}

-- name: held
SELECT * FROM {calls.held_leases}

-- name: next_due
SELECT {calls.next_due}
