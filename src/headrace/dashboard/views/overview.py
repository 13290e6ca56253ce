"""The first page: what is there, what is wrong, what is going on."""

from __future__ import annotations

from datetime import datetime

from headrace.dashboard.asked import Asked, View
from headrace.dashboard.same import Same, command, curl
from headrace.dashboard.views import depths
from headrace.dashboard.views.jobs import moment
from headrace.dashboard.views.presence import seen_lately
from headrace.dashboard.views.recent import recent
from headrace.dashboard.views.then import levels_at
from headrace.model import State
from headrace.stores.base import Finding, Health

QUEUES_SHOWN = 12
FAILURES_SHOWN = 8


async def overview(asked: Asked) -> View:
    manager = asked.manager
    seen = await manager.overview()
    rows = depths.by_queue(seen, await manager.pauses(), await manager.limits())
    findings = [one for one in await manager.diagnose(quick=True) if one.health is not Health.OK]
    failures = await manager.find(
        states=(State.FAILED, State.DEAD), newest_first=True, limit=FAILURES_SHOWN
    )
    workers = await seen_lately(asked)
    lately = await recent(asked)
    then = levels_at(_moment(asked), rows, lately.history, lately.moments)
    tenant = manager.tenant
    return View(
        "overview.html",
        "Overview",
        {
            "whole": depths.together(rows),
            "queues": rows[:QUEUES_SHOWN],
            "more_queues": max(0, len(rows) - QUEUES_SHOWN),
            "several_tenants": len(depths.tenants_of(rows)) > 1,
            "findings": [(one, about(asked, one)) for one in findings],
            "failures": failures.jobs,
            "workers": workers,
            "at": seen.at,
            "recent": lately,
            "then": then,
        },
        same=(
            Same(
                "What is there", command("stats", tenant=tenant), curl(asked.address, "/overview")
            ),
            Same("Watch it in a terminal", command("top", tenant=tenant)),
            Same("What is wrong", command("doctor", tenant=tenant), curl(asked.address, "/doctor")),
        ),
    )


def _moment(asked: Asked) -> datetime | None:
    """`?at=`: a minute of the last hour."""
    text = asked.word("at")
    return None if text is None else moment(text, asked.now)


def about(asked: Asked, finding: Finding) -> str:
    """The page that a finding is about."""
    to = asked.links.to
    kind, _, name = finding.what.partition(" ")
    match kind:
        case "queue":
            return to("queue", name=name)
        case "schedule":
            return to("schedules")
        case "expired":
            return to("jobs", state=("running", "cancelling"))
        case "dead":
            return to("errors", state="dead")
        case "backlog":
            return to("workers")
        case _:
            return to("system")
