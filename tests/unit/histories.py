"""A small lawful history, made by the real manager on the memory store, for the checker's tests to spoil."""

from __future__ import annotations

import random
from typing import Any

from headrace import Dependency, DependencyKind, Job, JobManager, JobSpec, Policies, Policy
from headrace.clock import ManualClock
from headrace.retry import NoBackoff
from headrace.stores.base import KeyScope
from headrace.stores.memory import MemoryStore
from headrace.testing.checker import (
    Client,
    History,
    Reading,
    Run,
    Said,
    Submission,
    collect,
    signed,
)

LEASE_SECONDS = 10.0
TYPE = "t"


class Story:
    """Acts on a store and writes down what its clients would."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.manager = JobManager(
            MemoryStore(),
            clock=self.clock,
            policies=Policies(
                Policy(lease_seconds=LEASE_SECONDS, backoff=NoBackoff(), max_attempts=3)
            ),
            dice=random.Random(1),
        )
        self.submissions: list[Submission] = []
        self.runs: list[Run] = []
        self._now = 0.0

    async def submit(self, id: str, **options: Any) -> None:
        key = options.get("key")
        scope = None if key is None else KeyScope("default", "default", TYPE, key)
        answer = await self.manager.submit(JobSpec(type=TYPE, id=id, **options))
        self.submissions.append(Submission(job_id=id, key=scope, answer=answer.job.id))

    async def claim(self, *ids: str) -> list[Job]:
        """Claim all that is due; it must be these."""
        self.clock.advance(1)
        jobs = await self.manager.claim("w", limit=100)
        assert {job.id for job in jobs} == set(ids)
        return sorted(jobs, key=lambda job: ids.index(job.id))

    def run(self, job: Job, said: Said | None) -> str:
        """A call of the handler; None: it never came to its end. Its token."""
        assert job.token is not None
        self._now += 1
        self.runs.append(
            Run(
                job_id=job.id,
                token=job.token,
                attempt=job.attempt,
                process=1,
                began=self._now,
                ended=None if said is None else self._now + 0.5,
                said=said,
            )
        )
        return job.token

    async def complete(self, *ids: str) -> None:
        for job in await self.claim(*ids):
            token = self.run(job, Said.COMPLETED)
            await self.manager.complete(job.id, token, {"token": token})

    async def fail(self, *ids: str) -> None:
        for job in await self.claim(*ids):
            token = self.run(job, Said.FAILED)
            await self.manager.fail(job.id, token, signed(token, "no"))

    async def lose(self, *ids: str) -> None:
        for job in await self.claim(*ids):
            self.run(job, None)
        self.clock.advance(LEASE_SECONDS + 1)
        await self.manager.reap()

    async def snooze(self, *ids: str) -> None:
        for job in await self.claim(*ids):
            await self.manager.snooze(job.id, self.run(job, Said.SNOOZED), seconds=0)

    async def history(self, **options: Any) -> History:
        live = [event.seq for event in await self.manager.events()]
        return await collect(
            self.manager,
            client=Client(submissions=self.submissions, runs=self.runs),
            readings=[Reading(after="", seqs=live)],
            dice=random.Random(1),
            **options,
        )


async def lawful_history() -> History:
    """One job of each fate: simple, child, lost, dead, fallen, snoozed, keyed twice, waiting for any."""
    story = Story()
    await story.submit("simple")
    await story.submit("child", after=["simple"])
    await story.complete("simple")
    await story.complete("child")
    await story.submit("lost")
    await story.lose("lost")
    await story.complete("lost")
    await story.submit("dead", max_attempts=2)
    await story.submit("fallen", after=["dead"])
    await story.submit("whatever", after=[Dependency("dead", DependencyKind.AFTER_ANY)])
    await story.fail("dead")
    await story.fail("dead")
    await story.manager.update("whatever", priority=1, add_tags=["said"])
    await story.snooze("whatever")
    await story.manager.reschedule("whatever")
    await story.complete("whatever")
    await story.submit("keyed", key="k")
    await story.submit("keyed-again", key="k")
    await story.complete("keyed")
    await story.submit("keyed-later", key="k")
    await story.complete("keyed-later")
    # An answer that never came: it may be stored or not.
    story.submissions.append(Submission(job_id="unknown"))
    return await story.history()
