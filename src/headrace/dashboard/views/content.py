"""All of what is in a job, where a page shows only the beginning."""

from __future__ import annotations

from headrace.dashboard import contents
from headrace.dashboard.asked import Asked
from headrace.errors import InvalidInput


async def whole(asked: Asked) -> str:
    """`?id=…&part=arguments`."""
    job = await asked.manager.get(asked.word("id") or "")
    stored = {
        "arguments": job.payload_json,
        "result": job.result_json,
        "checkpoint": job.checkpoint_json,
    }
    part = asked.word("part") or ""
    if part not in stored:
        raise InvalidInput(f"a job has no part {part!r}; nothing was read")
    found = contents.content(part, stored[part], whole=True)
    return "" if found is None else found.text
