"""The faults: workers killed, workers stopped past their lease, running jobs cancelled, jobs meddled with."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time

import msgspec

from headrace import JobManager
from headrace.errors import Refusal
from headrace.model import State
from tests.faults.app import LEASE_SECONDS
from tests.faults.fleet import Fleet
from tests.faults.observer import Observer

STOP_SECONDS = (LEASE_SECONDS * 1.5, LEASE_SECONDS * 4)
"""At least past the lease; at most this long, should the stopped one hold up the others."""
CANCELLED_SHARE = 0.8
"""Of the jobs that wait to be cancelled; the others complete."""
LAST_FAULT_AT = 0.9
"""Of the jobs have ended: the storm is over before the work is."""


class Havoc(msgspec.Struct):
    """What was done, for the report."""

    kills: int = 0
    stops: int = 0
    leases_killed: int = 0
    leases_stopped: int = 0
    cancelled: int = 0
    updated: int = 0
    rescheduled: int = 0


class Faults:
    """Strikes evenly over the work, however fast it goes: each fault waits for its share of it."""

    def __init__(
        self,
        fleet: Fleet,
        observer: Observer,
        *,
        jobs: int,
        kills: int,
        stops: int,
        dice: random.Random,
    ) -> None:
        self._fleet = fleet
        self._observer = observer
        self._jobs = jobs
        self._dice = dice
        self._plan = [self._kill] * kills + [self._stop] * stops
        dice.shuffle(self._plan)
        self.done = Havoc()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number, strike in enumerate(self._plan, 1):
                share = LAST_FAULT_AT * number / len(self._plan)
                while self._observer.ended < share * self._jobs:  # noqa: ASYNC110 - a count in a store
                    await asyncio.sleep(0.02)
                await asyncio.sleep(self._dice.uniform(0.0, 0.1))
                group.create_task(strike(await self._victim()))

    async def _victim(self) -> int:
        """A worker that holds jobs, if there is one. One always stays, so that work goes on."""
        while len(self._fleet.standing) < 2:  # noqa: ASYNC110 - others start meanwhile
            await asyncio.sleep(0.02)
        standing = self._fleet.standing
        busy = [pid for pid in standing if self._observer.held_by(pid)]
        return self._dice.choice(busy or standing)

    async def _kill(self, pid: int) -> None:
        self.done.kills += 1
        self.done.leases_killed += len(self._observer.held_by(pid))
        self._fleet.kill(pid)

    async def _stop(self, pid: int) -> None:
        self._fleet.stop(pid)
        self.done.stops += 1
        self.done.leases_stopped += len(self._observer.held_by(pid))
        at_least, at_most = STOP_SECONDS
        stopped_at = time.monotonic()
        await asyncio.sleep(at_least)
        while self._observer.held_by(pid):
            if time.monotonic() > stopped_at + at_most:
                break
            await asyncio.sleep(0.05)
        self._fleet.go_on(pid)


async def cancel_running(
    manager: JobManager, observer: Observer, done: Havoc, dice: random.Random
) -> None:
    """Cancel some of the jobs that wait for it, while they run. Until cancelled itself."""
    spared: set[str] = set()
    while True:
        for job_id, event in list(observer.live.items()):
            if event.type != "wait_to_be_cancelled" or event.after is not State.RUNNING:
                continue
            if job_id in spared:
                continue
            spared.add(job_id)
            if dice.random() < CANCELLED_SHARE:
                done.cancelled += len((await manager.cancel([job_id], reason="havoc")).jobs)
        await asyncio.sleep(0.2)


async def meddle(manager: JobManager, observer: Observer, done: Havoc, dice: random.Random) -> None:
    """Say something else of jobs, whatever they are doing, and let some be due now. Until cancelled."""
    while True:
        live = list(observer.live.items())
        for job_id, _ in dice.sample(live, k=min(len(live), 3)):
            with contextlib.suppress(Refusal):  # it has ended meanwhile
                await manager.update(
                    job_id, priority=dice.randrange(5), add_tags=[f"said-{dice.randrange(9)}"]
                )
                done.updated += 1
        waiting = [job_id for job_id, event in live if event.after is State.RETRYING]
        for job_id in waiting[:1]:
            with contextlib.suppress(Refusal):
                await manager.reschedule(job_id)
                done.rescheduled += 1
        await asyncio.sleep(0.1)
