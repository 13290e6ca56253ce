"""What fleets and their workers are called. A worker's name says fleet, run, task and attempt."""

from __future__ import annotations

import secrets
from typing import NamedTuple

from headrace import validation
from headrace.errors import InvalidName

FLEET_CHARS_MAX = 64
"""Leaves room for the rest of a worker's name."""

_TASK, _ATTEMPT = "task-", "attempt-"


class Place(NamedTuple):
    """Where in a fleet a worker is."""

    task: int
    attempt: int
    """Counts the tasks that were started for this place: 0 until one was lost."""


def check_fleet(name: object) -> str:
    checked = validation.check_name(name, "name of the fleet")
    if len(checked) > FLEET_CHARS_MAX:
        raise InvalidName(
            f"the name of the fleet has {len(checked)} characters, the limit is {FLEET_CHARS_MAX}; "
            f"{validation.UNCHANGED}"
        )
    return checked


def default_fleet(place: str) -> str:
    """The module's own name: `shop` for `acme.shop:app`."""
    return place.partition(":")[0].rpartition(".")[2][:FLEET_CHARS_MAX]


def new_run() -> str:
    """Tells one start of a fleet from the next under the same name."""
    return secrets.token_hex(4)


def worker_name(fleet: str, run: str, place: Place) -> str:
    return f"{fleet}/{run}/{_TASK}{place.task}/{_ATTEMPT}{place.attempt}"


def place_of(worker: str | None, fleet: str, run: str) -> Place | None:
    """None: not a worker of this run of the fleet."""
    if worker is None or not worker.startswith(f"{fleet}/{run}/{_TASK}"):
        return None
    task, _, attempt = worker.removeprefix(f"{fleet}/{run}/").partition("/")
    try:
        return Place(int(task.removeprefix(_TASK)), int(attempt.removeprefix(_ATTEMPT)))
    except ValueError:
        return None
