"""What the holder of a lease writes, heartbeats and notes; and how many leases hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from headrace.clock import to_us
from headrace.stores.base import Extended, Fence, Held, Note
from headrace.stores.redis.codes import STATE_OF_BYTE
from headrace.stores.redis.connection import Argument, Server
from headrace.stores.redis.lanes import read_lanes
from headrace.stores.redis.rows import pack_progress, score
from headrace.stores.redis.scripts import Script

_EXTEND = Script("extend")
_ANNOTATE = Script("annotate")
_HELD = Script("held")

_LEASES_PER_CALL = 1000


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
    said: list[Argument] = []
    if note.progress is not None:
        said += ("p", pack_progress(note.progress))
    if note.progress_note is not None:
        said += ("n", note.progress_note)
    if note.checkpoint_json is not None:
        said += ("c", note.checkpoint_json)
    if note.log_json is not None:
        said += ("l", note.log_json)
    arguments = (to_us(now), fence.job_id, fence.token, *said)
    # The lease fences a note, and a note sent twice does what one does: it may be repeated.
    return bool(await server.read_script(_ANNOTATE, *arguments))


async def held(server: Server, now: datetime, queues: Sequence[str]) -> list[Held]:
    """Counted in one step."""
    named, flat = await server.read_script(_HELD, to_us(now), *queues)
    lanes = read_lanes(named)
    counts: Counter[tuple[str, str, str | None]] = Counter()
    for number, jobs in zip(flat[::2], flat[1::2], strict=True):
        lane = lanes[number]
        counts[lane.tenant, lane.queue, lane.limit_key] += jobs
    return [
        Held(tenant=tenant, queue=queue, limit_key=limit_key, jobs=jobs)
        for (tenant, queue, limit_key), jobs in counts.items()
    ]
