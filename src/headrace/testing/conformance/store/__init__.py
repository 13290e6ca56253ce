"""The store protocol, verb by verb: what `headrace.stores.base.JobStore` promises."""

from headrace.testing.conformance.store import (
    backlog,
    claims,
    commits,
    dependencies,
    events,
    gates,
    heads,
    held,
    insertion,
    leases,
    limit_keys,
    logs,
    presence,
    reading,
    records,
    rewrites,
    shares,
)
from headrace.testing.conformance.store.suite import suite

__all__ = [
    "backlog",
    "claims",
    "commits",
    "dependencies",
    "events",
    "gates",
    "heads",
    "held",
    "insertion",
    "leases",
    "limit_keys",
    "logs",
    "presence",
    "reading",
    "records",
    "rewrites",
    "shares",
    "suite",
]
