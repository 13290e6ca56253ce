"""Who has changed what by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from headrace.dashboard.asked import Asked, View
from headrace.dashboard.same import Same, command

DAYS = 90
ROWS_SHOWN = 200


async def audit(asked: Asked) -> View:
    actor, act, target = asked.word("actor"), asked.word("act"), asked.word("target")
    rows = await asked.manager.audit(
        asked.now - timedelta(days=DAYS),
        actor=actor,
        act=act,
        target=target,
        limit=ROWS_SHOWN,
    )
    return View(
        "audit.html",
        "Audit",
        {
            "rows": rows,
            "rows_shown": ROWS_SHOWN,
            "days": DAYS,
            "json": _json,
            "only": [
                (name, value)
                for name, value in (("actor", actor), ("act", act), ("target", target))
                if value is not None
            ],
        },
        same=(
            Same(
                "List it",
                command("audit", tenant=asked.manager.tenant),
            ),
        ),
    )


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
