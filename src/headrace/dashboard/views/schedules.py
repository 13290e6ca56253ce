"""Schedules: what comes by itself, when next, and what became of it last time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from headrace import duration
from headrace import schedules as rules
from headrace.dashboard.asked import Asked, View
from headrace.dashboard.same import Same, command, curl
from headrace.model import Job
from headrace.schedules import Cron, Schedule
from headrace.schedules.schedule import TAG

TICKS_SHOWN = 3
RUNS_SHOWN = 5


@dataclass(frozen=True)
class Row:
    schedule: Schedule
    next: Sequence[datetime]
    runs: Sequence[Job]
    """The latest, newest first."""

    @property
    def told(self) -> str:
        """When it is due, as it was written."""
        when = self.schedule.when
        if isinstance(when, Cron):
            return f"{when.expression} ({when.zone})"
        return f"every {duration.exact(when.seconds)}"


async def schedules(asked: Asked) -> View:
    now = asked.now
    rows = [
        Row(
            one,
            rules.upcoming(one, now, TICKS_SHOWN),
            (
                await asked.manager.scoped(one.tenant).find(
                    tags=[f"{TAG}={one.name}"], newest_first=True, limit=RUNS_SHOWN
                )
            ).jobs,
        )
        for one in await asked.manager.schedules()
    ]
    return View(
        "schedules.html",
        "Schedules",
        {"rows": rows, "several_tenants": len({row.schedule.tenant for row in rows}) > 1},
        same=(
            Same(
                "List them",
                command("schedule", "list", tenant=asked.manager.tenant),
                curl(asked.address, "/schedules"),
            ),
        ),
    )
