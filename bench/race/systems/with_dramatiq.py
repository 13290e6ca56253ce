"""Dramatiq on Redis: `dramatiq -p 1 -t 16`, its middleware as it comes."""

from __future__ import annotations

import dramatiq
import redis
from dramatiq.brokers.redis import RedisBroker

from bench.race.driver import FILLING, URL, System
from bench.race.ledger import note

dramatiq.set_broker(RedisBroker(url=URL))


@dramatiq.actor(max_retries=0)
def noop(n: int, filling: str) -> None:
    note(n)


class Dramatiq(System):
    async def open(self) -> None:
        self._redis = redis.Redis.from_url(URL)

    async def reset(self) -> None:
        self._redis.flushall()

    async def submit(self, job: int) -> None:
        noop.send(job, FILLING)

    async def left(self) -> int:
        return int(self._redis.hlen("dramatiq:default.msgs"))


SYSTEM = Dramatiq
