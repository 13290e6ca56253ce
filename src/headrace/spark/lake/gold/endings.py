"""How an attempt ended, in SQL: the one place that says which outcomes are failures and which are losses."""

from __future__ import annotations

LEASE_EXPIRED = "lease_expired"
"""The code of a loss, also where it spent the budget and the job is dead."""

LOST = f"(outcome = 'lost' OR (outcome IN ('dead', 'abandoned') AND code <=> '{LEASE_EXPIRED}'))"
"""Its worker vanished."""
FAILED = f"(outcome IN ('retrying', 'failed', 'dead') AND NOT code <=> '{LEASE_EXPIRED}')"
"""Its handler failed or ran out of time, and nobody had asked it to stop."""
WASTED = f"({LOST} OR {FAILED})"
"""It ran and brought nothing."""
RETURNED = "(outcome IN ('snoozed', 'released'))"
"""It gave the job back on purpose."""
STOPPED = "(outcome = 'cancelled' OR (outcome = 'abandoned' AND NOT code <=> 'lease_expired'))"
"""Somebody did not want it any more."""
