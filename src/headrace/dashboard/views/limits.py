"""Limits: what each queue allows, and how much of it is taken."""

from __future__ import annotations

from headrace.dashboard.asked import Asked, View
from headrace.dashboard.same import Same, command, curl
from headrace.dashboard.views import depths
from headrace.limits import QueueLimits


async def limits(asked: Asked) -> View:
    found = await asked.manager.limits()
    rows = depths.by_queue(await asked.manager.overview())
    running: dict[str, int] = {}
    waiting: dict[str, int] = {}
    for row in rows:
        assert row.queue is not None
        running[row.queue] = running.get(row.queue, 0) + row.running
        waiting[row.queue] = waiting.get(row.queue, 0) + row.open - row.running
    chosen = asked.word("queue")
    return View(
        "limits.html",
        "Limits",
        {
            "limits": dict(sorted(found.items())),
            "running": running,
            "waiting": waiting,
            "chosen": chosen,
            "edited": None if chosen is None else found.get(chosen, QueueLimits()),
            "others": sorted(running.keys() - found.keys()),
        },
        same=(
            Same("List them", command("limits", "list"), curl(asked.address, "/limits")),
            *(
                ()
                if chosen is None
                else (Same("Take them away", command("limits", "remove", chosen)),)
            ),
        ),
    )
