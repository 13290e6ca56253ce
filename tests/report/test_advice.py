"""Each piece of advice appears where its evidence is, and only there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from headrace.report import build, read
from tests.report import tables
from tests.report.tables import Rows, at, buckets

LATE = {
    "started": 100,
    "started_in_time": 50,
    "ended": 100,
    "completed": 100,
    "completed_in_time": 100,
}
SHORT = [
    {"minute": at(minute), "ready": 30, "waiting": 30, "running": 4} for minute in range(0, 60, 2)
]
RAN = {"ended": 100, "run_sum_seconds": 14_000.0, "run_buckets": buckets(b14=100)}
RETRIED = {"retried_jobs": 40, "wasted_seconds": 600.0, "extra_attempts": 80}


LAST = {"minute": at(59), "submitted": 1}


def error(**more: Any) -> Mapping[str, Any]:
    return {"message": "no route", "occurrences": 5, "first_seen": at(2), "last_seen": at(9)} | more


CASES: dict[str, tuple[dict[str, Rows], str, str]] = {
    "capacity": (
        {"backlog": SHORT, "slo": [LATE], "latency": [RAN]},
        "Add capacity: about 70 slots, 66 more than the 4 that ran at once at most",
        "99 % should start within 1 m; send did not. Up to 30 were due and unclaimed, at 12:00.",
    ),
    "one worker's losses": (
        {
            "errors": [error(code="lease_expired", category="system")],
            "workers": [{"worker": "w1", "losses": 5}, {"worker": "w2"}],
        },
        "Look at w1: it alone lost attempts.",
        "5 attempts lost, all of them its own, of send (5).",
    ),
    "leases": (
        {
            "errors": [error(code="lease_expired", category="system")],
            "workers": [{"worker": "w1", "losses": 3}, {"worker": "w2", "losses": 2}],
            "latency": [{"run_max_seconds": 300.0}],
        },
        "Consider a longer lease",
        "5 attempts lost on 2 workers, of send (5); the longest run of these types took 5 m.",
    ),
    "an outage": (
        {
            "throughput": [{"minute": at(5), "lost": 100}, {"minute": at(6), "lost": 51}, LAST],
            "errors": [
                error(
                    code="lease_expired",
                    category="system",
                    occurrences=151,
                    first_seen=at(5.99),
                    last_seen=at(6.01),
                )
            ],
            "workers": [{"worker": "w1", "losses": 80}, {"worker": "w2", "losses": 71}],
        },
        "Look at what all workers share: the store, the network or the host stood still before 12:05.",
        "151 attempts lost on 2 workers, of send (151): nearly all at once, within 1.2 s.",
    ),
    "losses all over the time": (
        {
            "throughput": [*({"minute": at(minute), "lost": 5} for minute in range(30)), LAST],
            "errors": [error(code="lease_expired", category="system", occurrences=150)],
            "workers": [{"worker": "w1", "losses": 80}, {"worker": "w2", "losses": 70}],
            "latency": [{"run_max_seconds": 300.0, "run_buckets": buckets(b16=100)}],
        },
        "Consider a longer lease",
        "150 attempts lost on 2 workers, of send (150); the longest run of these types took 5 m.",
    ),
    "failing for good": (
        {
            "outcomes": [
                {"outcome": "completed", "jobs": 90},
                {"outcome": "failed", "jobs": 10},
            ],
            "errors": [error(fatal=10, occurrences=10)],
        },
        "Look into why send fails for good: more than 5 % of the jobs do.",
        "send: 10 %, 10 of 100 jobs (most by “no route”, 12:02 to 12:09). The commands below Errors",
    ),
    "a burst": (
        {
            "throughput": [
                {"minute": at(0), "submitted": 5000, "started": 500},
                *({"minute": at(minute), "started": 500} for minute in range(1, 10)),
                LAST,
            ],
            "backlog": [
                {"minute": at(minute), "ready": 4500 - 500 * minute, "running": 20}
                for minute in range(10)
            ],
            "slo": [LATE],
        },
        "Add capacity: about 200 slots, 180 more than the 20 that ran at once at most",
        "A slot took 25 jobs a minute",
    ),
    "idle slots": (
        {
            "throughput": [
                *({"minute": at(minute), "submitted": 40, "started": 40} for minute in range(10)),
                LAST,
            ],
            "backlog": [
                *({"minute": at(minute), "running": 40} for minute in range(10)),
                *({"minute": at(minute), "ready": 30, "running": 2} for minute in range(10, 40)),
            ],
            "slo": [LATE],
            "latency": [RAN],
        },
        "Look at what keeps workers from jobs that are due: a paused queue, a limit",
        "less than half of the 40 jobs ran",
    ),
    "hopeless retries": (
        {
            "retries": [RETRIED | {"recovered_jobs": 2, "given_up_jobs": 38}],
            "errors": [error()],
            "outcomes": [{"outcome": "retrying", "attempts": 80, "run_seconds": 600.0}],
        },
        "Fail send for good instead of retrying",
        "of 40 retried jobs 2 completed, and what was tried again had run for 10 m (most by “no route”",
    ),
    "given up too soon": (
        {
            "retries": [RETRIED | {"recovered_jobs": 35, "given_up_jobs": 5}],
            "errors": [error(fatal=5)],
        },
        "Give send more attempts or a longer backoff",
        "87.5 % of 40 retried jobs completed, yet 5 were given up (most by “no route”",
    ),
    "tails": (
        {"latency": [{"run_max_seconds": 400.0, "run_buckets": buckets(b9=990, b17=20)}]},
        "Look at the slowest runs of send, and consider a timeout",
        "one for 6 m 40 s",
    ),
    "lion's share": (
        {
            "tenants": [{"run_seconds": 90.0}, {"tenant": "bolt", "run_seconds": 10.0}],
            "backlog": [{"minute": at(0), "ready": 30}],
        },
        "Consider a limit for tenant acme",
        "90 % of all run time went to it, of 2 tenants; up to 30 jobs",
    ),
    "paths": (
        {
            "paths": [
                {
                    "job_id": f"j{number}",
                    "finalized_at": at(3),
                    "steps": [
                        {
                            "job_id": f"p{number}",
                            "type": "cut",
                            "wait_seconds": 1,
                            "run_seconds": 9,
                        },
                        {
                            "job_id": f"j{number}",
                            "type": "glue",
                            "wait_seconds": 1,
                            "run_seconds": 1,
                        },
                    ],
                }
                for number in range(20)
            ]
        },
        "To end chains sooner, begin with cut: it mostly runs there.",
        "83.3 % of the time on 20 critical paths is its own: 3 m running, 20 s waiting for a worker.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_advice_comes_with_its_evidence(case: str, tmp_path: Path) -> None:
    held, advice, evidence = CASES[case]
    minutes = [{"minute": at(minute), "submitted": 1} for minute in (0, 59)]
    whole: dict[str, Rows] = {"throughput": minutes, **held}
    (found,) = build(read(tables.write(tmp_path, whole), since=at(0))).advice
    assert found.advice.startswith(advice)
    assert evidence in found.evidence


TOO_LITTLE: dict[str, dict[str, Rows]] = {
    "workers kept up": {
        "backlog": [one | {"ready": 0} for one in SHORT],
        "slo": [LATE],
        "latency": [RAN],
    },
    "nothing started late": {
        "backlog": SHORT,
        "slo": [LATE | {"started_in_time": 100}],
        "latency": [RAN],
    },
    "two losses": {
        "errors": [error(code="lease_expired", occurrences=2)],
        "workers": [{"worker": "w1", "losses": 2}],
    },
    "few that fail": {
        "outcomes": [{"outcome": "completed", "jobs": 960}, {"outcome": "dead", "jobs": 40}]
    },
    "fewer than prove anything": {
        "outcomes": [{"outcome": "completed", "jobs": 1}, {"outcome": "dead", "jobs": 8}]
    },
    "few retries": {"retries": [{"retried_jobs": 9, "given_up_jobs": 9}]},
    "half of the retries help": {
        "retries": [RETRIED | {"recovered_jobs": 20, "given_up_jobs": 20}]
    },
    "one tenant": {
        "tenants": [{"run_seconds": 90.0}],
        "backlog": [{"minute": at(0), "ready": 30}],
    },
    "nobody waited": {
        "tenants": [{"run_seconds": 90.0}, {"tenant": "bolt", "run_seconds": 10.0}],
        "backlog": [{"minute": at(0), "ready": 3}],
    },
    "even runs": {"latency": [RAN]},
}


@pytest.mark.parametrize("case", TOO_LITTLE)
def test_too_little_evidence_gives_no_advice(case: str, tmp_path: Path) -> None:
    whole: dict[str, Rows] = {
        "throughput": [{"minute": at(59), "submitted": 1}],
        **TOO_LITTLE[case],
    }
    assert build(read(tables.write(tmp_path, whole), since=at(0))).advice == []
