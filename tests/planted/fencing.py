"""Defects of fencing and of what one tenant can do to another."""

from __future__ import annotations

from operator import attrgetter

from headrace.stores.memory import rows
from tests.planted.defect import Defect, patched

_COMPARED = (
    "id",
    "tenant",
    "queue",
    "type",
    "priority",
    "limit_key",
    "version",
    "state",
    "token",
    "assignee",
    "attempt",
    "failures",
    "losses",
)


def _all_but(*fields: str) -> attrgetter[tuple[object, ...]]:
    return attrgetter(*(field for field in _COMPARED if field not in fields))


DEFECTS: dict[str, Defect] = {
    "a commit compares the version alone": patched(rows, "_standing", attrgetter("id", "version")),
    "a commit believes what it is told of the tenant": patched(
        rows, "_standing", _all_but("tenant")
    ),
    "a commit believes an invented token": patched(rows, "_standing", _all_but("token")),
    "a commit believes that a job is running": patched(rows, "_standing", _all_but("state")),
    "a commit believes what it is told of the budget": patched(
        rows, "_standing", _all_but("failures", "losses")
    ),
}
