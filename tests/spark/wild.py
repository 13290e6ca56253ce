"""Random histories, made by a real manager: every way in which a job can go, ids used again included."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import pyarrow as pa

from headrace import Dependency, DependencyKind, JobManager, JobSpec, PermanentError
from headrace.clock import ManualClock
from headrace.errors import HeadraceError
from headrace.model import TERMINAL, Event, Job, State
from headrace.policy import CancelMode, Policies, Policy
from headrace.retry import NoBackoff
from headrace.spark.schemas import EVENTS
from headrace.stores.base import EventQuery, JobStore

START = datetime(2026, 3, 1, 21, 50, tzinfo=UTC)
LEASE_SECONDS = 60.0
_POLICY = Policy(lease_seconds=LEASE_SECONDS, backoff=NoBackoff())
POLICIES = Policies(_POLICY, queues={"slow": msgspec.structs.replace(_POLICY, fenced=False)})
PAUSES_SECONDS = (0.000001, 0.25, 0.25, 7, 7, 61, 400)
"""Between two steps. Most leases lapse before anything is done with them."""
BRISK_SECONDS = (0.000001, 0.25, 0.25, 2, 7, 20)
"""Most do not."""
NAMES = tuple(f"job-{number}" for number in range(8))


class Wild:
    """Acts at random on a store. Time moves on with every step, over midnight before long."""

    def __init__(self, manager: JobManager, clock: ManualClock, dice: random.Random) -> None:
        self.manager = manager
        self.clock = clock
        self.dice = dice
        self.made = 0
        self.pauses_seconds: Sequence[float] = PAUSES_SECONDS

    async def steps(self, count: int) -> None:
        for _ in range(count):
            self.clock.advance(self.dice.choice(self.pauses_seconds))
            # What the lifecycle refuses is no part of the history.
            with contextlib.suppress(HeadraceError):
                await self._step()

    async def _step(self) -> None:
        acts: list[Callable[[], Awaitable[object]]] = [
            self._submit,
            self._submit,
            self._submit,
            self._claim,
            self._claim,
            self._settle,
            self._settle,
            self._settle,
            self._unfenced,
            self._cancel,
            self._update,
            self._reschedule,
            self._step_of_the_clock,
            self._delete,
            self.manager.reap,
            self.manager.end_lifetimes,
            self.manager.sweep,
        ]
        await self.dice.choice(acts)()

    async def _submit(self) -> None:
        dice = self.dice
        self.made += 1
        if dice.random() < 0.1:
            await self._submit_chain()
            return
        named = dice.random() < 0.5
        after = await self._some() if dice.random() < 0.3 else []
        await self.manager.submit(
            JobSpec(
                type=dice.choice(["mail", "größe", "t"]),
                id=dice.choice(NAMES) if named else f"made-{self.made}",
                tenant=dice.choice(["default", "acme"]),
                queue=dice.choice(["default", "slow"]),
                payload={"n": self.made},
                priority=dice.randrange(5),
                delay_seconds=dice.choice([None, None, None, 90.0]),
                tags=dice.choice([(), ("a",), ("a", 'k="ü"')]),
                key=dice.choice([None, f"key-{self.made}"]),
                correlation_id=dice.choice([None, "c"]),
                max_attempts=dice.choice([None, 1, 2, 3]),
                lifetime_seconds=dice.choice([None, 300.0, 86_400.0]),
                after=[
                    Dependency(
                        job.id, dice.choice([DependencyKind.AFTER, DependencyKind.AFTER_ANY])
                    )
                    for job in after
                ],
            )
        )

    async def _submit_chain(self) -> None:
        """Four jobs that wait for each other, in one batch and in any order."""
        dice = self.dice
        names = [f"chain-{self.made}-{place}" for place in range(4)]
        kinds = [DependencyKind.AFTER_ANY, DependencyKind.AFTER_ANY, DependencyKind.AFTER]
        specs = [
            JobSpec(
                type="link",
                id=name,
                queue=dice.choice(["default", "slow"]),
                after=[] if before is None else [Dependency(before, dice.choice(kinds))],
            )
            for before, name in itertools.pairwise([None, *names])
            if name is not None
        ]
        dice.shuffle(specs)
        await self.manager.submit_many(specs)

    async def _some(self) -> Sequence[Job]:
        """One or two jobs to wait for; mostly such as have not ended: there is something to wait for."""
        states = None if self.dice.random() < 0.2 else [one for one in State if one not in TERMINAL]
        found = (await self.manager.find(states=states, limit=50)).jobs
        return self.dice.sample(found, k=min(len(found), self.dice.randrange(1, 3)))

    async def _claim(self) -> None:
        await self.manager.claim(self.dice.choice(["w1", "w2"]), limit=self.dice.randrange(1, 4))

    async def _settle(self) -> None:
        dice, manager = self.dice, self.manager
        held = [job for job in (await manager.find(limit=200)).jobs if job.token is not None]
        if not held:
            return
        job = dice.choice(held)
        token = job.token
        match dice.randrange(7):
            case 0 | 1:
                await manager.complete(job.id, token, dice.choice([None, {"ok": True}]))
            case 2:
                await manager.fail(
                    job.id, token, f"no answer from 'h{job.attempt}' in {self.made} s"
                )
            case 3:
                await manager.fail(job.id, token, PermanentError("broken", code="E"))
            case 4:
                await manager.snooze(job.id, token, seconds=dice.choice([0, 30]))
            case 5:
                await manager.release(job.id, token)
            case _:
                await manager.stop(job.id, token)

    async def _unfenced(self) -> None:
        """A worker comes back late, to a queue that knows no tokens."""
        found = (await self.manager.find(states=[State.LOST, State.ABANDONED], limit=200)).jobs
        if late := [job for job in found if job.queue == "slow"]:
            act = self.dice.choice([self.manager.complete, self.manager.release])
            await act(self.dice.choice(late).id, None)

    async def _cancel(self) -> None:
        job = await self._any()
        if job is None:
            return
        if self.dice.random() < 0.3:
            await self.manager.abandon(job.id)
        else:
            await self.manager.cancel([job.id], mode=self.dice.choice(list(CancelMode)))

    async def _step_of_the_clock(self) -> None:
        """It jumps ahead, a job is stamped by it, and it is set back."""
        await self.manager.restamp()
        self.clock.advance(600)
        await self._submit()
        await self.manager.restamp()
        self.clock.advance(-600)
        await self.manager.restamp()

    async def _update(self) -> None:
        job = await self._any()
        if job is None:
            return
        dice = self.dice
        wishes: dict[str, object] = {
            "priority": dice.randrange(5),
            "tags": dice.choice([(), ("a",), ("ü", "z")]),
            "correlation_id": dice.choice([None, "other"]),
        }
        chosen = dice.sample(sorted(wishes), k=dice.randrange(1, 4))
        await self.manager.update(job.id, **{name: wishes[name] for name in chosen})  # type: ignore[arg-type]  # each fits its name

    async def _reschedule(self) -> None:
        job = await self._any()
        if job is not None:
            when = self.clock.now() + timedelta(seconds=self.dice.choice([0, 30]))
            await self.manager.reschedule(job.id, when)

    async def _delete(self) -> None:
        job = await self._any()
        if job is not None and job.is_terminal and self.dice.random() < 0.7:
            await self.manager.delete([job.id])

    async def _any(self) -> Job | None:
        found = (await self.manager.find(limit=200)).jobs
        return self.dice.choice(found) if found else None


async def wild_on(store: JobStore, seed: int) -> Wild:
    clock = ManualClock(START)
    dice = random.Random(seed)
    manager = JobManager(store, clock=clock, policies=POLICIES, dice=random.Random(seed))
    return Wild(manager, clock, dice)


async def all_events(store: JobStore) -> list[Event]:
    found: list[Event] = []
    while page := await store.events(EventQuery(after=found[-1].cursor if found else "")):
        found += page
    return found


def table_of(events: Sequence[Event]) -> pa.Table:
    """As a reader of the log gives them to Spark."""
    rows = [
        {field: getattr(event, field) for field in EVENTS.names if field != "detail"}
        | {"detail": None if event.detail_json is None else event.detail_json.decode()}
        for event in events
    ]
    return pa.Table.from_pylist(rows, schema=EVENTS)
