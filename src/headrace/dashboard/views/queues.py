"""The queues, and one of them: how deep it is, what holds it up, who has its slots."""

from __future__ import annotations

from headrace.dashboard import charts
from headrace.dashboard.asked import Asked, View
from headrace.dashboard.same import Same, command, curl
from headrace.dashboard.views import depths
from headrace.dashboard.views.presence import seen_lately
from headrace.dashboard.views.recent import recent
from headrace.limits import QueueLimits
from headrace.model import State

JOBS_SHOWN = 12
HOLDERS_MAX = 200


async def queues(asked: Asked) -> View:
    rows = await _rows(asked)
    tenant = asked.manager.tenant
    return View(
        "queues.html",
        "Queues",
        {"rows": rows, "several_tenants": len(depths.tenants_of(rows)) > 1},
        same=(
            Same("Count by queue", command("stats", tenant=tenant), curl(asked.address, "/queues")),
        ),
    )


async def queue(asked: Asked) -> View:
    name = asked.word("name") or ""
    manager = asked.manager
    mine = [row for row in await _rows(asked) if row.queue == name]
    whole = depths.together(mine)
    pauses = [pause for pause in await manager.pauses() if pause.queue == name]
    limits = (await manager.limits(name)).get(name)
    held = await manager.holders(name, limit=HOLDERS_MAX)
    explanation = await manager.explain_queue(name)
    waiting = await manager.find(
        queues=[name], states=(State.PENDING, State.RETRYING, State.LOST), limit=JOBS_SHOWN
    )
    bad = await manager.find(
        queues=[name], states=(State.FAILED, State.DEAD), newest_first=True, limit=JOBS_SHOWN
    )
    workers = [
        one
        for one in await seen_lately(asked)
        if one.seen.queues is None or name in one.seen.queues
    ]
    return View(
        "queue.html",
        f"Queue {name}",
        {
            "name": name,
            "whole": whole,
            "rows": mine,
            "pauses": pauses,
            "limits": limits,
            "held": held,
            "explanation": explanation,
            "slots": _slots(limits, len(held.jobs)),
            "waiting": waiting.jobs,
            "bad": bad.jobs,
            "workers": workers,
            "shares": _shares(mine),
            "recent": await recent(asked, queues=[name]),
        },
        same=(
            Same(
                "Why does nothing of it start?",
                command("explain", queue=name, tenant=manager.tenant),
                curl(asked.address, "/queues/{}/explain", name),
            ),
            Same("Count its jobs", command("stats", queue=name, tenant=manager.tenant)),
            Same(
                "Pause it",
                command("pause", name, tenant=manager.tenant),
                curl(asked.address, "/queues/{}/pause", name, method="POST"),
            ),
            Same(
                "Resume it",
                command("resume", name, tenant=manager.tenant),
                curl(asked.address, "/queues/{}/resume", name, method="POST"),
            ),
        ),
        topics=(f"queue:{name}",),
        every_seconds=2.0,
    )


async def _rows(asked: Asked) -> list[depths.Depth]:
    manager = asked.manager
    return depths.by_queue(await manager.overview(), await manager.pauses(), await manager.limits())


def _slots(limits: QueueLimits | None, taken: int) -> tuple[int, int] | None:
    """How many are taken, of how many; None where there is no such limit, or too many to draw."""
    if limits is None or limits.concurrency is None or limits.concurrency > HOLDERS_MAX:
        return None
    return min(taken, limits.concurrency), limits.concurrency


def _shares(rows: list[depths.Depth]) -> list[charts.Part]:
    """What runs, by tenant: whether turns are fair can be seen."""
    colours = ("c1", "c2", "c4", "c5", "c3", "c6")
    running = sorted((row for row in rows if row.running), key=lambda row: -row.running)
    return [
        charts.Part(row.tenant or "", row.running, colours[min(i, len(colours) - 1)])
        for i, row in enumerate(running)
    ]
