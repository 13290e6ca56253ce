"""TaskIQ on a Redis stream: acknowledged, a hundred tasks at once, read a hundred at a time."""

from __future__ import annotations

import redis
from taskiq.serializers import ORJSONSerializer
from taskiq_redis import RedisStreamBroker

from bench.race.driver import FILLING, URL, System
from bench.race.ledger import note

broker = RedisStreamBroker(URL, consumer_id="0", xread_count=100).with_serializer(
    ORJSONSerializer()
)


@broker.task("noop")
async def noop(n: int, filling: str) -> None:
    note(n)


class TaskIQ(System):
    async def open(self) -> None:
        self._redis = redis.Redis.from_url(URL)
        await broker.startup()

    async def reset(self) -> None:
        self._redis.flushall()
        await broker._declare_consumer_group()

    async def submit(self, job: int) -> None:
        await noop.kiq(job, FILLING)

    async def left(self) -> int:
        (group,) = self._redis.xinfo_groups("taskiq")
        return int(group["lag"] or 0) + int(group["pending"])


SYSTEM = TaskIQ
