"""Cases of the job store architecture, by method and heading."""

from __future__ import annotations

from headrace.testing.conformance.job_store import (
    background,
    claiming,
    lifecycle,
    querying,
    scheduling,
    storage,
    strategies,
    updates,
    upkeep,
)
from headrace.testing.conformance.job_store.suite import suite

__all__ = [
    "background",
    "claiming",
    "lifecycle",
    "querying",
    "scheduling",
    "storage",
    "strategies",
    "suite",
    "updates",
    "upkeep",
]
