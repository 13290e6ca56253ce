"""The manager on top of a store: what every user of Headrace may rely on, whatever the store."""

from headrace.testing.conformance.manager import (
    bad_input,
    cancellation,
    dependencies,
    encryption,
    idempotency,
    isolation,
    queries,
    recovery,
    retention,
    submission,
    working,
)
from headrace.testing.conformance.manager.suite import suite

__all__ = [
    "bad_input",
    "cancellation",
    "dependencies",
    "encryption",
    "idempotency",
    "isolation",
    "queries",
    "recovery",
    "retention",
    "submission",
    "suite",
    "working",
]
