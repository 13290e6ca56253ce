"""Backend API Specification: every condition, transition, effect and invariant of the text."""

from headrace.testing.conformance.backend_api import (
    assignment,
    batches,
    cancellation,
    capacity,
    endings,
    errors,
    invariants,
    lifecycle,
    maintenance,
    queries,
    sizes,
    streams,
    submission,
    updates,
    workers,
)
from headrace.testing.conformance.backend_api.suite import suite

__all__ = [
    "assignment",
    "batches",
    "cancellation",
    "capacity",
    "endings",
    "errors",
    "invariants",
    "lifecycle",
    "maintenance",
    "queries",
    "sizes",
    "streams",
    "submission",
    "suite",
    "updates",
    "workers",
]
