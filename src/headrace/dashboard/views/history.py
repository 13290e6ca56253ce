"""What happened lately, by minute or hour: counted from the log by whoever maintains the store."""

from __future__ import annotations

from headrace.dashboard.asked import Asked, View
from headrace.dashboard.same import Same, command, curl
from headrace.dashboard.views.recent import RANGE, RANGES, recent

HISTORY_RANGE = "6h"


async def history(asked: Asked) -> View:
    span = asked.word("range") or HISTORY_RANGE
    queues = asked.words("queue")
    shown = await recent(asked, span=span, queues=queues or None)
    since = shown.history.since.isoformat(timespec="seconds")
    return View(
        "history.html",
        "History",
        {
            "recent": shown,
            "span": span,
            "ranges": tuple(RANGES),
            "queues": queues,
        },
        same=(
            Same(
                "What happened",
                command("stats", tenant=asked.manager.tenant),
                curl(asked.address, "/history", query={"since": since, "queue": queues}),
            ),
            Same("As a page, from a lake", command("report", lake="LAKE")),
        ),
        every_seconds=5.0 if span == RANGE else 15.0,
    )
