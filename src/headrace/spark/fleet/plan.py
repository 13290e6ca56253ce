"""What a fleet is to be, checked before anything is started."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from headrace import address, validation
from headrace.errors import InvalidInput, InvalidLimit
from headrace.redaction import Redacted
from headrace.spark.fleet.names import check_fleet, default_fleet
from headrace.worker import Settings
from headrace.worker.loading import load_app

TASKS_MAX = 10_000
FAILURES_MAX = 1000
"""Restarts of one task before Spark gives the fleet up; each that Spark does not blame on us is free."""

_LOCAL = re.compile(r"local(?:\[(?P<slots>\d+|\*)(?:\s*,\s*\d+)?\])?")
_SQLITE = "sqlite:///"


class Fleet(Redacted, frozen=True, kw_only=True):
    """A fleet to be. The application is loaded by its name, module:app, on every executor."""

    place: str
    tasks: int = 2
    """Workers, each in a Spark task of its own."""
    name: str | None = None
    """None: the name of the module."""
    url: str | None = None
    """None: the application's own store."""
    tenant: str | None = None
    """None: the application's own."""
    settings: Settings = Settings()
    """Of each worker."""
    drain: bool = False
    """End when no job is left that the fleet could run; else it goes on until it is told to stop."""
    keys: str | None = None
    """The file of a key ring, on the executors."""
    py_files: Sequence[str] = ()
    """Modules and archives for Spark to bring to the executors."""
    log_level: str | None = None
    """Of the tasks. None: logging is left as it is."""


class Plan(Redacted, frozen=True, kw_only=True):
    """A fleet with nothing left open."""

    fleet: Fleet
    name: str
    url: str
    tenant: str | None
    """Whose jobs its workers run. None: everybody's."""
    types: tuple[str, ...]
    """What its workers can run."""
    queues: tuple[str, ...] | None


def plan(fleet: Fleet) -> Plan:
    """Raises InvalidInput for what can never work, and what loading the application here raises."""
    validation.check_limit(fleet.tasks, "tasks", maximum=TASKS_MAX)
    app = load_app(fleet.place)
    if not app.tasks:
        raise InvalidInput(
            f"{fleet.place} has no tasks: there is nothing for a fleet to run; nothing was started"
        )
    queues = fleet.settings.queues
    return Plan(
        fleet=fleet,
        name=check_fleet(default_fleet(fleet.place) if fleet.name is None else fleet.name),
        url=shared_url(fleet.url or app.url),
        tenant=fleet.tenant or app.tenant,
        types=tuple(type_ for task in app.tasks.values() for type_ in task.types),
        queues=None if queues is None else tuple(queues),
    )


def shared_url(url: str) -> str:
    """The url as executors can use it: a relative path means another file in their folder."""
    url = address.joined(address.split(url))
    if url.startswith("memory:"):
        raise InvalidInput(
            "executors cannot see a memory: store, it is gone with the process that made it; "
            "name one by sqlite:, postgresql: or redis:; nothing was started"
        )
    if url.startswith(_SQLITE) and not url.startswith(f"{_SQLITE}/"):
        return f"{_SQLITE}{Path.cwd()}/{url.removeprefix(_SQLITE)}"
    return url


def patient_master(master: str, tasks: int) -> str:
    """A local master that starts lost tasks again, as a cluster does. Raises if it has too few slots."""
    local = _LOCAL.fullmatch(master)
    if local is None:
        return master
    given = local["slots"] or "1"
    slots = (os.cpu_count() or 1) if given == "*" else int(given)
    if slots < tasks:
        raise InvalidLimit(
            f"{tasks} tasks do not run at once on {master}, which has {slots}: use local[{tasks}] or "
            f"--tasks {slots}; nothing was started"
        )
    return f"local[{slots},{FAILURES_MAX}]"


def spark_config(master: str, tasks: int, given: Mapping[str, str]) -> dict[str, str]:
    """What suits tasks that run for weeks; `given` wins."""
    config = {
        "spark.task.maxFailures": str(FAILURES_MAX),
        # A worker is not slow because it does not end.
        "spark.speculation": "false",
        "spark.excludeOnFailure.enabled": "false",
    }
    if master.startswith("spark:"):
        config["spark.cores.max"] = str(tasks)  # else it would take the whole cluster
    return {**config, **given}
