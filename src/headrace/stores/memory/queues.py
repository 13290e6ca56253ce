"""Pauses of queues, and the workers that asked for jobs."""

from __future__ import annotations

from datetime import datetime
from operator import attrgetter

from headrace.stores.base import Pause, WorkerSeen


class Queues:
    def __init__(self) -> None:
        self._pauses: dict[tuple[str, str | None], Pause] = {}
        self._workers: dict[str, WorkerSeen] = {}

    def pause(self, pause: Pause) -> None:
        self._pauses.setdefault((pause.queue, pause.tenant), pause)

    def resume(self, queue: str, tenant: str | None) -> bool:
        return self._pauses.pop((queue, tenant), None) is not None

    def pauses(self) -> list[Pause]:
        return sorted(self._pauses.values(), key=lambda pause: (pause.queue, pause.tenant or ""))

    def announce(self, worker: WorkerSeen) -> None:
        self._workers[worker.worker] = worker

    def workers(self, since: datetime) -> list[WorkerSeen]:
        seen = (worker for worker in self._workers.values() if worker.seen_at >= since)
        return sorted(seen, key=attrgetter("worker"))
