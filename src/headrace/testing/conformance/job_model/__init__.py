"""Every row and rule of the job model specification that can be checked, as cases."""

from headrace.testing.conformance.job_model import (
    backoffs,
    cancellation,
    constraints,
    delivery,
    dependency_types,
    failures,
    idempotency,
    identity,
    metadata,
    payloads,
    priorities,
    propagation,
    retries,
    states,
    timeouts,
    transitions,
)
from headrace.testing.conformance.job_model.suite import suite

__all__ = [
    "backoffs",
    "cancellation",
    "constraints",
    "delivery",
    "dependency_types",
    "failures",
    "idempotency",
    "identity",
    "metadata",
    "payloads",
    "priorities",
    "propagation",
    "retries",
    "states",
    "suite",
    "timeouts",
    "transitions",
]
