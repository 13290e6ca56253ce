"""What Redis could do: one script that completes a hundred jobs and takes the next, events written.

A line, the jobs that run, and a stream. No retries, limits, tags, lanes or leases: a bound, not a queue.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import redis.asyncio

from bench.race.driver import FILLING, URL, System
from bench.race.ledger import note

BATCH = 100
STORE = """
for _, job in ipairs(ARGV) do
  local seq = redis.call('INCR', KEYS[1])
  redis.call('ZADD', KEYS[2], seq, job)
  redis.call('XADD', KEYS[4], '*', 'stored', seq)
end
"""
TURN = """
for index = 2, #ARGV do
  if redis.call('HDEL', KEYS[3], ARGV[index]) == 1 then
    redis.call('XADD', KEYS[4], '*', 'done', ARGV[index])
  end
end
local taken = redis.call('ZPOPMIN', KEYS[2], ARGV[1])
local jobs = {}
for index = 1, #taken, 2 do
  redis.call('HSET', KEYS[3], taken[index + 1], taken[index])
  redis.call('XADD', KEYS[4], '*', 'taken', taken[index + 1])
  jobs[#jobs + 1] = taken[index + 1]
  jobs[#jobs + 1] = taken[index]
end
return jobs
"""
KEYS = ("raw:seq", "raw:line", "raw:running", "raw:events")


def job_of(job: int) -> str:
    return json.dumps([job, FILLING])


class RawRedis(System):
    async def open(self) -> None:
        self._redis = redis.asyncio.Redis.from_url(URL)
        self._store = self._redis.register_script(STORE)

    async def reset(self) -> None:
        await self._redis.flushall()

    async def submit(self, job: int) -> None:
        await self._store(KEYS, [job_of(job)])

    async def submit_many(self, jobs: Sequence[int]) -> None:
        await self._store(KEYS, [job_of(job) for job in jobs])

    async def left(self) -> int:
        return int(await self._redis.zcard(KEYS[1])) + int(await self._redis.hlen(KEYS[2]))


async def work() -> None:
    turn = redis.asyncio.Redis.from_url(URL).register_script(TURN)
    done: list[bytes] = []
    while True:
        answer = await turn(KEYS, [BATCH, *done])
        done = answer[::2]
        for job in answer[1::2]:
            note(json.loads(job)[0])
        if not done:
            await asyncio.sleep(0.001)


SYSTEM = RawRedis
