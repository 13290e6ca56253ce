"""Paused queues, and the workers that ask for jobs."""

from __future__ import annotations

from datetime import datetime

import msgspec

from headrace.clock import from_us, to_us
from headrace.stores.base import Pause, WorkerSeen
from headrace.stores.redis.connection import Server

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(WorkerSeen).decode


async def pause(server: Server, wanted: Pause) -> None:
    """A queue that is paused already stays paused since then."""
    field = _field(wanted.queue, wanted.tenant)
    await server.read("HSETNX", server.keys.of("pauses"), field, to_us(wanted.since))


async def resume(server: Server, queue: str, tenant: str | None) -> bool:
    return bool(await server.write("HDEL", server.keys.of("pauses"), _field(queue, tenant)))


async def pauses(server: Server) -> list[Pause]:
    key = server.keys.of("pauses")
    fields = await server.read("HGETALL", key)
    found = []
    for field, since in zip(fields[::2], fields[1::2], strict=True):
        queue, _, tenant = field.decode().partition("\n")
        found.append(Pause(queue, tenant or None, from_us(int(since))))
    return sorted(found, key=lambda one: (one.queue, one.tenant or ""))


async def announce(server: Server, worker: WorkerSeen) -> None:
    await server.read("HSET", server.keys.of("workers"), worker.worker, _encode(worker))


async def workers(server: Server, since: datetime) -> list[WorkerSeen]:
    seen = [_decode(packed) for packed in await server.read("HVALS", server.keys.of("workers"))]
    return sorted(
        (worker for worker in seen if worker.seen_at >= since), key=lambda worker: worker.worker
    )


def _field(queue: str, tenant: str | None) -> str:
    """As claim.lua looks it up. Names are printable: they have no line break."""
    return queue if tenant is None else f"{queue}\n{tenant}"
