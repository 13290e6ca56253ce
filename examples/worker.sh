#!/bin/sh
# A worker of jobs of type "shout" in shell, with curl and jq: claims, keeps its lease, and says how it ended.
#
#   HEADRACE=http://localhost:8300 HEADRACE_TOKEN=hdr_… sh worker.sh
#
# With JOBS=n it ends after so many jobs.
set -eu
api="${HEADRACE:-http://localhost:8300}/api/v1"

ask() { # method path [body] [lease]: prints the body and, on a line of its own, the status
    curl -sS -X "$1" "$api$2" -w '\n%{http_code}' \
        -H "Authorization: Bearer ${HEADRACE_TOKEN:-}" -H 'Content-Type: application/json' \
        ${4:+-H "Headrace-Lease: $4"} ${3:+--data-binary "$3"}
}

keep() { # job lease: a heartbeat every few seconds, for as long as the job runs
    while sleep "${BEAT:-5}"; do
        leases=$(jq -nc --arg job "$1" --arg lease "$2" '{leases: [{job_id: $job, lease: $lease}]}')
        ask POST /leases/heartbeat "$leases" >/dev/null || true
    done
}

work() { # payload: what the job is about
    printf '%s' "$1" | jq -ec '.text | ascii_upcase'
}

left=${JOBS:--1}
while [ "$left" -ne 0 ]; do
    claimed=$(ask POST /claim '{"worker": "shell", "types": ["shout"], "wait_seconds": 20}') || claimed=
    job=$(printf '%s' "$claimed" | sed '$d' | jq -c '.jobs[0] // empty')
    if [ -z "$job" ]; then
        [ "$(printf '%s' "$claimed" | tail -n 1)" = 200 ] || sleep 1 # the server is away, or full
        continue
    fi
    id=$(printf '%s' "$job" | jq -r '.id | @uri')
    lease=$(printf '%s' "$job" | jq -r .lease.token)
    keep "$(printf '%s' "$job" | jq -r .id)" "$lease" &
    keeper=$!
    if result=$(work "$(printf '%s' "$job" | jq -c .payload)" 2>/dev/null); then
        ask POST "/jobs/$id/complete" "{\"result\": $result}" "$lease" | tail -n 1
    else
        ask POST "/jobs/$id/fail" '{"message": "there is no text to shout"}' "$lease" | tail -n 1
    fi
    kill "$keeper"
    left=$((left - 1))
done
