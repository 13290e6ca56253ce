"""The conformance kit: what every store must do, as cases that run on any store.

    python -m headrace.testing.conformance --url memory:
    python -m headrace.testing.conformance --url 'sqlite:///kit-{n}.db' --suite job_model

One suite for the store protocol, one for the manager on top of the store, and one per specification.
Each is a package of its own, split by topic.
"""

from __future__ import annotations

from importlib import import_module

from headrace.testing.conformance.kit import Case, Env, Suite, raises

SUITE_NAMES = (
    "store",
    "manager",
    "backend_api",
    "queue_semantics",
    "job_model",
    "job_store",
    "conformance",
)


def suites() -> list[Suite]:
    """Every suite, in the order from the ground up."""
    return [load(name) for name in SUITE_NAMES]


def load(name: str) -> Suite:
    """One suite by name; it lives in the package of that name."""
    suite = import_module(f"headrace.testing.conformance.{name}").suite
    assert isinstance(suite, Suite)
    return suite


__all__ = ["SUITE_NAMES", "Case", "Env", "Suite", "load", "raises", "suites"]
