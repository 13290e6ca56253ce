"""RQ on Redis: its SimpleWorker, which runs jobs in its own process."""

from __future__ import annotations

from collections.abc import Sequence

import redis
from rq import Queue

from bench.race.driver import FILLING, URL, System
from bench.race.ledger import note


def noop(n: int, filling: str) -> None:
    note(n)


class Rq(System):
    async def open(self) -> None:
        self._redis = redis.Redis.from_url(URL)
        self._queue = Queue(connection=self._redis)

    async def reset(self) -> None:
        self._redis.flushall()

    async def submit(self, job: int) -> None:
        self._queue.enqueue("bench.race.systems.with_rq.noop", job, FILLING, result_ttl=0)

    async def submit_many(self, jobs: Sequence[int]) -> None:
        self._queue.enqueue_many(
            [
                Queue.prepare_data("bench.race.systems.with_rq.noop", (job, FILLING), result_ttl=0)
                for job in jobs
            ]
        )

    async def left(self) -> int:
        return int(self._redis.llen("rq:queue:default")) + int(self._redis.zcard("rq:wip:default"))


SYSTEM = Rq
