"""Reading jobs, keys and how many there are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import msgspec

from headrace.clock import to_us
from headrace.model import Job
from headrace.stores.base import Backlog, KeyScope, Query, Tally
from headrace.stores.codec import STATE_OF
from headrace.stores.redis import search
from headrace.stores.redis.codes import STATE_OF_BYTE
from headrace.stores.redis.connection import Server
from headrace.stores.redis.lanes import Lane, read_lanes
from headrace.stores.redis.rows import handle_of, pack_scope, read_jobs
from headrace.stores.redis.scripts import Script

_GET = Script("get")
_COUNT = Script("count")
_COUNT_TAGGED = Script("count_tagged")
_BACKLOG = Script("backlog")

_IDS_PER_CALL = 500
_BYTES_PER_CALL = 16_000_000
_SCOPES_PER_CALL = 5000
_LANES_PER_CALL = 1000

# What insert.lua packs; false: the hold has no end.
_decode_hold = msgspec.msgpack.Decoder(tuple[str, int | bool, bool]).decode


async def get(server: Server, ids: Sequence[str]) -> dict[str, Job]:
    found: dict[str, Job] = {}
    start = 0
    while start < len(ids):
        page = ids[start : start + _IDS_PER_CALL]
        reply, looked_at = await server.read_script(_GET, _BYTES_PER_CALL, *page)
        found |= {job.id: job for job in read_jobs(reply)}
        start += looked_at
    return found


async def find(server: Server, query: Query) -> list[Job]:
    """Up to `limit` jobs that match, in order of seq."""
    found: list[Job] = []
    if query.ids is not None:
        named = (await get(server, list(dict.fromkeys(query.ids)))).values()
        candidates = search.one_page(search.in_order([handle_of(job.seq) for job in named], query))
    elif (listed := await search.candidates(server, query)) is None:
        return await search.scan(server, query)
    else:
        candidates = listed
    async for handles in candidates:
        found += await search.pick(server, query, handles, query.limit - len(found))
        if len(found) >= query.limit:
            break
    return found


async def keyed(server: Server, scopes: Sequence[KeyScope], now: datetime) -> dict[KeyScope, str]:
    """The ids of the jobs that hold these keys."""
    found: dict[KeyScope, str] = {}
    for start in range(0, len(scopes), _SCOPES_PER_CALL):
        page = scopes[start : start + _SCOPES_PER_CALL]
        packed = await server.read("HMGET", server.keys.of("keys"), *map(pack_scope, page))
        for scope, hold in zip(page, packed, strict=True):
            if hold is not None:
                job_id, expires_at, _ = _decode_hold(hold)
                if expires_at is False or expires_at > to_us(now):
                    found[scope] = job_id
    return found


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
        wanted = search.pack_filter(query)
        tag, _ = await search.rarest(server, tags)
        async for page in search.walk(server, server.keys.tag(tag), query):
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
            state=STATE_OF[state],
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
