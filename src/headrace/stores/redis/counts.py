"""How many jobs there are, by tenant, queue and state."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from headrace.clock import to_us
from headrace.stores.base import Query, Tally
from headrace.stores.redis.codes import STATE_OF_BYTE
from headrace.stores.redis.rows import Names, read_lanes
from headrace.stores.redis.scripts import Script
from headrace.stores.redis.search import pack_filter, rarest, walk
from headrace.stores.redis.server import Server

_COUNT = Script("count")
_COUNT_TAGGED = Script("count_tagged")

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
    lanes = read_lanes(_pairs(await server.read("HGETALL", server.keys.of("lanes"))))
    sums: dict[tuple[str, str, str], list[int]] = {}
    if tags:
        query = Query(tenant=tenant, queues=queues, tags=tags)
        wanted = pack_filter(query)
        tag, _ = await rarest(server, tags)
        async for page in walk(server, server.keys.tag(tag), query):
            _add(sums, await server.read_script(_COUNT_TAGGED, wanted, to_us(now), *page), lanes)
    else:
        chosen = [
            number
            for number, names in lanes.items()
            if tenant in (None, names[0]) and (queues is None or names[1] in queues)
        ]
        for start in range(0, len(chosen), _LANES_PER_CALL):
            page_of_lanes = chosen[start : start + _LANES_PER_CALL]
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


STATE_OF_NAME = {str(state): state for state in STATE_OF_BYTE.values()}


def _add(
    sums: dict[tuple[str, str, str], list[int]], flat: Sequence[Any], lanes: dict[int, Names]
) -> None:
    for lane, state, *amounts in zip(
        flat[::5], flat[1::5], flat[2::5], flat[3::5], flat[4::5], strict=True
    ):
        tenant, queue, *_ = lanes[int(lane)]
        row = sums.setdefault((tenant, queue, str(STATE_OF_BYTE[state])), [0, 0, 0])
        for index, amount in enumerate(amounts):
            row[index] += int(amount)


def _pairs(answer: Any) -> list[Any]:
    """HGETALL's answer as a flat list: redis-py makes a map of it on some protocols."""
    if isinstance(answer, dict):
        return [item for pair in answer.items() for item in pair]
    return list(answer)
