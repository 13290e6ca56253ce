"""Pauses of queues, and the workers that asked for jobs."""

from __future__ import annotations

from datetime import datetime

import msgspec

from headrace.clock import from_us, to_us
from headrace.stores.base import Pause, WorkerProcess, WorkerSeen
from headrace.stores.sqlite.rows import read_list
from headrace.stores.sqlite.session import Snapshot, Transaction
from headrace.stores.sqlite.sql import json_list, json_list_or_none, query

_PAUSE = query("pause")
_RESUME = query("resume")
_PAUSES = query("pauses")
_ANNOUNCE = query("announce")
_WORKERS = query("workers")
_read_process = msgspec.json.Decoder(WorkerProcess).decode


def pause(tx: Transaction, wanted: Pause) -> None:
    tx.connection.execute(_PAUSE, (wanted.queue, wanted.tenant, to_us(wanted.since)))


def resume(tx: Transaction, queue: str, tenant: str | None) -> bool:
    return tx.connection.execute(_RESUME, (queue, tenant)).rowcount > 0


def pauses(view: Snapshot) -> list[Pause]:
    rows = view.connection.execute(_PAUSES).fetchall()
    pauses = [Pause(queue, tenant, from_us(since)) for queue, tenant, since in rows]
    return sorted(pauses, key=lambda pause: (pause.queue, pause.tenant or ""))


def announce(tx: Transaction, worker: WorkerSeen) -> None:
    tx.connection.execute(
        _ANNOUNCE,
        (
            worker.worker,
            to_us(worker.seen_at),
            worker.tenant,
            json_list_or_none(worker.queues),
            json_list_or_none(worker.types),
            json_list(worker.tags),
            worker.slots,
            worker.busy,
            None if worker.process is None else msgspec.json.encode(worker.process).decode(),
        ),
    )


def workers(view: Snapshot, since: datetime) -> list[WorkerSeen]:
    rows = view.connection.execute(_WORKERS, (to_us(since),)).fetchall()
    return [
        WorkerSeen(
            worker=worker,
            seen_at=from_us(seen_at),
            tenant=tenant,
            queues=None if queues is None else read_list(queues),
            types=None if types is None else read_list(types),
            tags=read_list(tags),
            slots=slots,
            busy=busy,
            process=None if process is None else _read_process(process),
        )
        for worker, seen_at, tenant, queues, types, tags, slots, busy, process in rows
    ]
