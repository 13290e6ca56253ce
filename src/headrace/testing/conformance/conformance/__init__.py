"""Cases of the conformance specification, by its letters."""

from __future__ import annotations

from headrace.testing.conformance.conformance import (
    controls,
    events,
    isolation,
    leases,
    retries,
    submission,
    transitions,
)
from headrace.testing.conformance.conformance.suite import suite

__all__ = [
    "controls",
    "events",
    "isolation",
    "leases",
    "retries",
    "submission",
    "suite",
    "transitions",
]
