"""Workers: who is there, what each asks for, and what it holds."""

from __future__ import annotations

from headrace.dashboard.asked import Asked, View
from headrace.dashboard.same import Same, command, curl
from headrace.dashboard.views.presence import seen_lately
from headrace.model import State

LATEST_SHOWN = 25
HELD_MAX = 200


async def workers(asked: Asked) -> View:
    found = await seen_lately(asked)
    return View(
        "workers.html",
        "Workers",
        {"workers": found, "several_tenants": len({one.seen.tenant for one in found}) > 1},
        same=(Same("Who is there", command("top", once=""), curl(asked.address, "/workers")),),
    )


async def worker(asked: Asked) -> View:
    name = asked.word("name") or ""
    manager = asked.manager
    seen = [one for one in await seen_lately(asked) if one.seen.worker == name]
    held = await manager.find(
        assignee=name, states=(State.RUNNING, State.CANCELLING), limit=HELD_MAX
    )
    latest = await manager.find(assignee=name, newest_first=True, limit=LATEST_SHOWN)
    return View(
        "worker.html",
        f"Worker {name}",
        {"name": name, "seen": seen, "held": held.jobs, "latest": latest.jobs},
        same=(
            Same(
                "What it has held",
                command("list", worker=name, tenant=manager.tenant),
                curl(asked.address, "/jobs", query={"worker": name}),
            ),
        ),
        every_seconds=2.0,
    )
