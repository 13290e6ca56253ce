"""The sections of the dashboard, as its menu and its keys name them."""

from __future__ import annotations

from typing import NamedTuple


class Section(NamedTuple):
    path: str
    name: str
    key: str
    """After `g`."""
    pages: tuple[str, ...] = ()
    """Others that belong to it."""
    group: str = ""
    for_operators: bool = False
    """Concerns the store as a whole, not one tenant."""


SECTIONS = (
    Section("", "Overview", "o"),
    Section("jobs", "Jobs", "j", ("job",)),
    Section("errors", "Errors", "e", ("error",)),
    Section("queues", "Queues", "q", ("queue",)),
    Section("workers", "Workers", "w", ("worker",)),
    Section("schedules", "Schedules", "s"),
    Section("batches", "Batches", "b", ("batch",)),
    Section("history", "History", "h", group="More"),
    Section("limits", "Limits", "l", group="More"),
    Section("bulk", "Bulk acts", "u", ("bulk/new", "bulk/act"), group="More"),
    Section("system", "System", "y", group="More"),
    Section("audit", "Audit", "a", group="More"),
    Section("tokens", "Tokens", "t", group="More", for_operators=True),
)
