"""The store protocol, verb by verb: what `headrace.stores.base.JobStore` promises."""

from headrace.testing.conformance.store import (
    claims,
    commits,
    dependencies,
    events,
    gates,
    heads,
    insertion,
    leases,
    presence,
    reading,
    records,
    shares,
)
from headrace.testing.conformance.store.suite import suite

__all__ = [
    "claims",
    "commits",
    "dependencies",
    "events",
    "gates",
    "heads",
    "insertion",
    "leases",
    "presence",
    "reading",
    "records",
    "shares",
    "suite",
]
