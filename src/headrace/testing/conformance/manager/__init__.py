"""The manager on top of a store: what every user of Headrace may rely on, whatever the store."""

from headrace.testing.conformance.manager import (
    admission,
    bad_input,
    cancellation,
    completion,
    dependencies,
    encryption,
    fairness,
    idempotency,
    isolation,
    limits,
    limits_races,
    queries,
    recovery,
    retention,
    schedules,
    submission,
    working,
)
from headrace.testing.conformance.manager.suite import suite

__all__ = [
    "admission",
    "bad_input",
    "cancellation",
    "completion",
    "dependencies",
    "encryption",
    "fairness",
    "idempotency",
    "isolation",
    "limits",
    "limits_races",
    "queries",
    "recovery",
    "retention",
    "schedules",
    "submission",
    "suite",
    "working",
]
