"""Jobs in every state, for tests of the pure rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.model import CLAIMABLE, LEASED, TERMINAL, Category, Failure, Job, State

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
TOKEN = "1.nonce"


def job_in(state: State, **fields: Any) -> Job:
    """A lawful job in this state: claimed once unless it never can have been."""
    claimed = state not in (State.BLOCKED, State.PENDING)
    given: dict[str, Any] = {
        "id": "j",
        "type": "t",
        "state": state,
        "version": 5,
        "created_at": NOW - timedelta(hours=2),
        "updated_at": NOW - timedelta(hours=1),
        "run_at": NOW - timedelta(hours=2),
        "max_attempts": 3,
        "lease_seconds": 60.0,
    }
    if claimed:
        given |= {
            "attempt": 1,
            "assignee": "w",
            "assigned_at": NOW - timedelta(hours=1),
            "started_at": NOW - timedelta(hours=1),
            "scheduled_at": NOW - timedelta(hours=2),
        }
    if state in LEASED:
        given |= {"token": TOKEN, "lease_until": NOW + timedelta(seconds=30)}
    if state is State.LOST:
        given |= {"losses": 1}
    if state is State.RETRYING:
        given |= {"failures": 1, "failure": Failure("no", Category.TEMPORARY)}
    if state in TERMINAL:
        given |= {"finalized_at": NOW - timedelta(minutes=1)}
    assert (state in CLAIMABLE) + (state in LEASED) + (state in TERMINAL) + (
        state is State.BLOCKED
    ) == 1
    return Job(**(given | fields))
