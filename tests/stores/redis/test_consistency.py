"""Whatever many tasks do at once, and however they are cut off, the indexes follow the rows."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable

import pytest

from headrace.clock import ManualClock
from headrace.errors import HeadraceError
from headrace.limits import QueueLimits
from headrace.manager import JobManager
from headrace.model import Dependency, DependencyKind, EventKind
from headrace.policy import CancelMode
from headrace.spec import JobSpec
from headrace.stores.base import EventQuery, Rewrite
from headrace.stores.redis import RedisStore
from tests.stores.redis.consistency import check

ROUNDS = 4
STEPS = 20
TASKS = 8


class Chaos:
    """Tasks that do anything to any job, some of them cancelled in the middle of a call."""

    def __init__(self, manager: JobManager, clock: ManualClock, seed: int) -> None:
        self.manager = manager
        self.clock = clock
        self.dice = random.Random(seed)
        self.known: list[str] = []

    async def run(self) -> None:
        for _ in range(STEPS):
            step = asyncio.create_task(self._step())
            if self.dice.random() < 0.3:
                await asyncio.sleep(self.dice.random() * 0.003)
                step.cancel()
            # Refused, or cut off: either way the store must be whole.
            with contextlib.suppress(asyncio.CancelledError, HeadraceError):
                await step

    async def _step(self) -> None:
        steps: list[Callable[[], Awaitable[object]]] = [
            self._submit,
            self._submit,
            self._work,
            self._work,
            self._work,
            self._cancel,
            self._delete,
            self._recover,
            self._limit,
            self._rewrite,
        ]
        await self.dice.choice(steps)()

    async def _submit(self) -> None:
        dice = self.dice
        after = [
            Dependency(one, dice.choice(list(DependencyKind)))
            for one in dice.sample(self.known, min(len(self.known), dice.randint(0, 2)))
        ]
        submitted = await self.manager.submit_many(
            [
                JobSpec(
                    type=dice.choice("ab"),
                    queue=dice.choice(["q1", "q2"]),
                    tenant="acme",
                    tags=dice.sample(["x", "y", "z"], dice.randint(0, 2)),
                    priority=dice.randint(0, 4),
                    delay_seconds=dice.choice([0, 0, 50]),
                    key=dice.choice([None, None, "k1", "k2"]),
                    limit_key=dice.choice([None, "c1", "c2", "c3"]),
                    after=after,
                )
                for _ in range(dice.randint(1, 5))
            ]
        )
        self.known += [job.id for job in submitted.jobs]

    async def _work(self) -> None:
        dice = self.dice
        tags = dice.choice([(), (), ("x",), ("x", "y")])
        for job in await self.manager.claim("w", tags=tags, limit=dice.randint(1, 8)):
            match dice.randint(0, 4):
                case 0:
                    await self.manager.fail(
                        job.id, job.token, "no", retry_after=dice.choice([0, 60])
                    )
                case 1:
                    await self.manager.snooze(job.id, job.token, seconds=5)
                case 2:
                    assert job.token is not None
                    spawned = await self.manager.spawn(job.id, job.token, [JobSpec(type="s")])
                    self.known += [one.id for one in spawned.jobs]  # and its lease will lapse
                case _:
                    await self.manager.complete(job.id, job.token, {"done": job.id})

    async def _cancel(self) -> None:
        mode = self.dice.choice(list(CancelMode))
        if self.dice.random() < 0.5:
            await self.manager.cancel(tags=["z"], mode=mode)
        elif self.known:
            await self.manager.cancel([self.dice.choice(self.known)], mode=mode)

    async def _delete(self) -> None:
        ended = await self.manager.find(states=["completed", "failed", "dead", "cancelled"])
        chosen = [job.id for job in ended.jobs if self.dice.random() < 0.3]
        if chosen:
            await self.manager.delete(chosen)
            self.known = [one for one in self.known if one not in chosen]

    async def _recover(self) -> None:
        self.clock.advance(self.dice.choice([1, 10, 40]))
        await self.manager.maintain()

    async def _limit(self) -> None:
        """With limits a queue has a gate, and its jobs are claimed by shares."""
        queue = self.dice.choice(["q1", "q2"])
        if self.dice.random() < 0.5:
            await self.manager.set_limits(queue, QueueLimits(key_concurrency=2, fair=True))
        else:
            await self.manager.remove_limits(queue)

    async def _rewrite(self) -> None:
        jobs = (await self.manager.find(limit=100)).jobs
        await self.manager.store.rewrite(
            [
                Rewrite(
                    job_id=job.id,
                    version=job.version,
                    payload_json=b'"%d"' % self.dice.getrandbits(100),
                    log_json=self.dice.choice([None, b"[1]"]),
                    failure_message="turned",
                )
                for job in self.dice.sample(jobs, min(len(jobs), 5))
            ]
        )


@pytest.mark.parametrize("seed", range(3))
async def test_the_indexes_follow_the_rows(store: RedisStore, seed: int) -> None:
    clock = ManualClock()
    manager = JobManager(store, clock=clock, dice=random.Random(seed))
    chaos = [Chaos(manager, clock, seed * 100 + n) for n in range(TASKS)]
    for _ in range(ROUNDS):
        await asyncio.gather(*(one.run() for one in chaos))
        await check(store)
    events = await store.events(EventQuery(limit=100_000))
    assert [event.seq for event in events] == list(range(1, len(events) + 1)), "a gap in the log"
    jobs = (await manager.find(limit=10_000)).jobs
    assert len(events) > 100
    for job in jobs:
        history = await store.events(EventQuery(job_id=job.id))
        assert history == [event for event in events if event.job_id == job.id]
        assert history[0].kind is EventKind.ENQUEUED
