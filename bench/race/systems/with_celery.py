"""Celery on Redis: one process without a pool, 64 tasks ahead, no results, no gossip."""

from __future__ import annotations

import redis
from celery import Celery

from bench.race.driver import FILLING, URL, System
from bench.race.ledger import note

app = Celery("race", broker=URL)
app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=64,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
)


@app.task(name="noop")
def noop(n: int, filling: str) -> None:
    note(n)


class CelerySystem(System):
    async def open(self) -> None:
        self._redis = redis.Redis.from_url(URL)

    async def reset(self) -> None:
        self._redis.flushall()

    async def submit(self, job: int) -> None:
        noop.delay(job, FILLING)

    async def left(self) -> int:
        return int(self._redis.llen("celery")) + int(self._redis.hlen("unacked"))


SYSTEM = CelerySystem
