"""Every sentence of the queue semantics specification that can be checked, as cases."""

from headrace.testing.conformance.queue_semantics import (
    failure_modes,
    fencing,
    guarantees,
    invariants,
    leases,
    non_guarantees,
    retries,
    transitions,
    triggers,
)
from headrace.testing.conformance.queue_semantics.suite import suite

__all__ = [
    "failure_modes",
    "fencing",
    "guarantees",
    "invariants",
    "leases",
    "non_guarantees",
    "retries",
    "suite",
    "transitions",
    "triggers",
]
