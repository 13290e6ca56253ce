"""Pauses of queues, and the workers that asked for jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter

import msgspec

from headrace.stores.base import Pause, WorkerProcess, WorkerSeen
from headrace.stores.postgres.session import Session

_read_process = msgspec.json.Decoder(WorkerProcess).decode


async def pause(session: Session, wanted: Pause) -> None:
    await session.write("pause", wanted.queue, wanted.tenant, wanted.since)


async def resume(session: Session, queue: str, tenant: str | None) -> bool:
    return bool(await session.write("resume", queue, tenant))


async def pauses(session: Session) -> list[Pause]:
    found = [Pause(*row) for row in await session.read("pauses")]
    return sorted(found, key=lambda one: (one.queue, one.tenant or ""))


async def announce(session: Session, worker: WorkerSeen) -> None:
    await session.write(
        "announce",
        worker.worker,
        worker.seen_at,
        worker.tenant,
        _list_or_none(worker.queues),
        _list_or_none(worker.types),
        list(worker.tags),
        worker.slots,
        worker.busy,
        None if worker.process is None else msgspec.json.encode(worker.process).decode(),
    )


async def workers(session: Session, since: datetime) -> list[WorkerSeen]:
    seen = [
        WorkerSeen(
            worker=name,
            seen_at=seen_at,
            tenant=tenant,
            queues=_tuple_or_none(queues),
            types=_tuple_or_none(types),
            tags=tuple(tags),
            slots=slots,
            busy=busy,
            process=None if process is None else _read_process(process),
        )
        for name, seen_at, tenant, queues, types, tags, slots, busy, process in await session.read(
            "workers", since
        )
    ]
    return sorted(seen, key=attrgetter("worker"))


def _list_or_none(values: Sequence[str] | None) -> list[str] | None:
    return None if values is None else list(values)


def _tuple_or_none(values: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(values)
