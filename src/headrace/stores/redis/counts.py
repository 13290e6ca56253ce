"""How many jobs there are, by tenant, queue and state; and how much of it has not started."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from headrace.clock import to_us
from headrace.stores.base import Backlog, Query, Tally
from headrace.stores.redis.codes import STATE_OF_BYTE
from headrace.stores.redis.connection import Server
from headrace.stores.redis.lanes import Lane, read_lanes
from headrace.stores.redis.read import pack_filter, rarest, walk
from headrace.stores.redis.scripts import Script

_COUNT = Script("count")
_COUNT_TAGGED = Script("count_tagged")
_BACKLOG = Script("backlog")

_LANES_PER_CALL = 1000


async def count(
    server: Server,
    now: datetime,
    *,
    tenant: str | None,
    queues: Sequence[str] | None,
    tags: Sequence[str],
) -> list[Tally]:
    """Tallies in order of tenant, queue, state. Up to a thousand lanes are counted in one step."""
    sums: dict[tuple[str, str, str], list[int]] = {}
    if tags:
        query = Query(tenant=tenant, queues=queues, tags=tags)
        wanted = pack_filter(query)
        tag, _ = await rarest(server, tags)
        async for page in walk(server, server.keys.tag(tag), query):
            flat = await server.read_script(_COUNT_TAGGED, wanted, to_us(now), *page)
            _add(sums, flat, await _named(server, {int(number) for number in flat[::5]}))
    else:
        lanes = {
            number: lane
            for number, lane in (await _filled(server)).items()
            if tenant in (None, lane.tenant) and (queues is None or lane.queue in queues)
        }
        numbers = list(lanes)
        for start in range(0, len(numbers), _LANES_PER_CALL):
            page_of_lanes = numbers[start : start + _LANES_PER_CALL]
            _add(sums, await server.read_script(_COUNT, to_us(now), *page_of_lanes), lanes)
    return [
        Tally(
            tenant=lane_tenant,
            queue=queue,
            state=STATE_OF_NAME[state],
            jobs=jobs,
            delayed=delayed,
            failures=failures,
        )
        for (lane_tenant, queue, state), (jobs, delayed, failures) in sorted(sums.items())
    ]


async def backlog(server: Server, tenant: str | None, queue: str | None) -> Backlog:
    """Up to five thousand jobs are added up in one step."""
    jobs = payload_bytes = 0
    resume: bytes | None = b""
    while resume is not None:
        some, their_bytes, resume = await server.read_script(
            _BACKLOG, tenant or "", queue or "", resume
        )
        jobs, payload_bytes = jobs + some, payload_bytes + their_bytes
    return Backlog(jobs, payload_bytes)


STATE_OF_NAME = {str(state): state for state in STATE_OF_BYTE.values()}


def _add(
    sums: dict[tuple[str, str, str], list[int]], flat: Sequence[Any], lanes: dict[int, Lane]
) -> None:
    for lane, state, *amounts in zip(
        flat[::5], flat[1::5], flat[2::5], flat[3::5], flat[4::5], strict=True
    ):
        names = lanes[int(lane)]
        row = sums.setdefault((names.tenant, names.queue, str(STATE_OF_BYTE[state])), [0, 0, 0])
        for index, amount in enumerate(amounts):
            row[index] += int(amount)


async def _filled(server: Server) -> dict[int, Lane]:
    """The lanes that have jobs; there may be many more that had some once."""
    counted = await server.read("HKEYS", server.keys.of("counts"))
    return await _named(server, {int(field.partition(b":")[0]) for field in counted})


async def _named(server: Server, numbers: Collection[int]) -> dict[int, Lane]:
    found: dict[int, Lane] = {}
    ordered = sorted(numbers)
    for start in range(0, len(ordered), _LANES_PER_CALL):
        page = ordered[start : start + _LANES_PER_CALL]
        names = await server.read("HMGET", server.keys.of("lanes"), *page)
        found |= read_lanes([item for pair in zip(page, names, strict=True) for item in pair])
    return found
