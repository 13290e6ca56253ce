"""Leases: keeping them, what their holders say meanwhile, and those that are over."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

from headrace.clock import to_us
from headrace.model import Job
from headrace.stores.base import Extended, Fence, Note
from headrace.stores.redis.codes import STATE_OF_BYTE
from headrace.stores.redis.connection import Argument, Server
from headrace.stores.redis.errors import text_refused
from headrace.stores.redis.rows import more_of, read_jobs, score
from headrace.stores.redis.scripts import Script

_EXTEND = Script("extend")
_ANNOTATE = Script("annotate")
_DUE = Script("due")

_LEASES_PER_CALL = 1000
_HANDLES_PER_CALL = 1000


async def extend(
    server: Server, leases: Mapping[Fence, float | None], now: datetime
) -> list[Extended]:
    wanted = [
        (fence, None if seconds is None else now + timedelta(seconds=seconds))
        for fence, seconds in leases.items()
    ]
    extended: list[Extended] = []
    for start in range(0, len(wanted), _LEASES_PER_CALL):
        page = wanted[start : start + _LEASES_PER_CALL]
        arguments: list[Argument] = [to_us(now)]
        for fence, until in page:
            arguments += (fence.job_id, fence.token, score(until))
        # A heartbeat sent twice does what one does: it may be repeated.
        states = await server.read_script(_EXTEND, *arguments)
        extended += (
            Extended(fence.job_id, STATE_OF_BYTE[state], until)
            for (fence, until), state in zip(page, states, strict=True)
            if state
        )
    return extended


async def annotate(server: Server, fence: Fence, note: Note, now: datetime) -> bool:
    with text_refused():
        said = [part for letter_and_value in more_of(note) for part in letter_and_value]
    arguments = (to_us(now), fence.job_id, fence.token, *said)
    # The lease fences a note, and a note sent twice does what one does: it may be repeated.
    return bool(await server.read_script(_ANNOTATE, *arguments))


async def due(
    server: Server,
    which: Literal["leases", "expiry"],
    now: datetime,
    limit: int,
    tenant: str | None,
) -> list[Job]:
    """Jobs whose lease, or lifetime, is over by `now`; the longest over first."""
    found: dict[str, Job] = {}
    rank = 0
    while rank >= 0 and len(found) < limit:
        size = min(limit - len(found), _HANDLES_PER_CALL)
        reply, following = await server.read_script(
            _DUE, which, to_us(now), size, tenant or "", rank
        )
        jobs = read_jobs(reply)
        found |= {job.id: job for job in jobs}
        rank = following
    return list(found.values())
