"""Single submissions at once share a commit, and each stands alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headrace import JobSpec
from headrace.clock import ManualClock
from headrace.errors import DuplicateJob, QueueFull, StoreUnavailable
from headrace.limits import QueueLimits
from headrace.manager import JobManager
from headrace.manager.group_commit import WAIT_SECONDS
from headrace.stores.base import Clash, Inserted, Insertion
from headrace.stores.memory import MemoryStore


class Slow(MemoryStore):
    """Answers an insertion when it is let through, and knows how many jobs each had."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []
        self.gate = asyncio.Event()
        self.error: Exception | None = None

    async def insert(self, insertion: Insertion) -> Inserted | Clash:
        self.sizes.append(len(insertion.jobs))
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return await super().insert(insertion)


def opened() -> tuple[Slow, JobManager]:
    store = Slow()
    return store, JobManager(store, clock=ManualClock())


async def started(manager: JobManager, *specs: JobSpec) -> list[asyncio.Task[Any]]:
    """Submissions that are all under way, the first of them with the store."""
    tasks = [asyncio.create_task(manager.submit(spec)) for spec in specs]
    await asyncio.sleep(0)
    return tasks


def specs(count: int) -> list[JobSpec]:
    return [JobSpec(type="t", id=f"j{n}") for n in range(count)]


async def test_one_goes_at_once_and_those_that_come_meanwhile_go_together() -> None:
    store, manager = opened()
    tasks = await started(manager, *specs(10))
    assert store.sizes == [1]
    store.gate.set()
    answers = await asyncio.gather(*tasks)
    assert store.sizes == [1, 9]
    assert [answer.job.id for answer in answers] == [f"j{n}" for n in range(10)]
    await manager.submit(JobSpec(type="t"))
    assert store.sizes == [1, 9, 1]


async def test_nobody_waits_for_a_slow_one_longer_than_the_bound() -> None:
    store, manager = opened()
    tasks = await started(manager, *specs(5))
    await asyncio.sleep(WAIT_SECONDS * 5)
    assert store.sizes == [1, 4]
    store.gate.set()
    await asyncio.gather(*tasks)


async def test_what_is_refused_touches_no_other() -> None:
    store, manager = opened()
    store.gate.set()
    await manager.submit(JobSpec(type="t", id="j3"))
    store.gate.clear()
    tasks = await started(manager, *specs(6))
    store.gate.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(answer, DuplicateJob) for answer in answers] == [n == 3 for n in range(6)]
    assert len(await manager.look_up([f"j{n}" for n in range(6)])) == 6


async def test_two_with_one_id_do_not_go_together() -> None:
    store, manager = opened()
    tasks = await started(manager, JobSpec(type="t"), *[JobSpec(type="t", id="same")] * 2)
    store.gate.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(answer, DuplicateJob) for answer in answers) == 1
    assert (await manager.stats()).total == 2


async def test_a_full_queue_takes_as_many_as_fit() -> None:
    store, manager = opened()
    store.gate.set()
    await manager.set_limits("default", QueueLimits(waiting_jobs_max=4))
    store.gate.clear()
    tasks = await started(manager, *specs(7))
    store.gate.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(answer, QueueFull) for answer in answers) == 3
    assert (await manager.stats()).total == 4


async def test_what_got_no_answer_is_not_sent_twice() -> None:
    store, manager = opened()
    tasks = await started(manager, *specs(4))
    store.error = StoreUnavailable("gone")
    store.gate.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(answer, StoreUnavailable) for answer in answers)
    assert store.sizes == [1, 3]


async def test_one_that_is_cancelled_while_it_waits_is_not_stored() -> None:
    store, manager = opened()
    tasks = await started(manager, *specs(4))
    tasks[2].cancel()
    await asyncio.sleep(0)
    store.gate.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(answers[2], asyncio.CancelledError)
    assert store.sizes == [1, 2]
    assert set(await manager.look_up([f"j{n}" for n in range(4)])) == {"j0", "j1", "j3"}


async def test_one_that_is_cancelled_with_the_store_takes_nobody_along() -> None:
    store, manager = opened()
    tasks = await started(manager, *specs(4))
    await asyncio.sleep(WAIT_SECONDS * 3)  # the group is with the store
    tasks[0].cancel()
    tasks[2].cancel()
    await asyncio.sleep(0)
    store.gate.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    kinds = [isinstance(answer, asyncio.CancelledError) for answer in answers]
    assert kinds == [True, False, True, False]


async def test_a_job_that_waits_for_others_goes_by_itself() -> None:
    store, manager = opened()
    store.gate.set()
    await manager.submit(JobSpec(type="t", id="parent"))
    store.gate.clear()
    tasks = await started(
        manager, JobSpec(type="t"), JobSpec(type="t", after="parent"), JobSpec(type="t")
    )
    await asyncio.sleep(WAIT_SECONDS * 3)
    assert store.sizes == [1, 1, 1, 1]
    store.gate.set()
    await asyncio.gather(*tasks)


@pytest.mark.parametrize("verb", ["submit", "submit_many"])
async def test_either_verb_may_be_used_for_one(verb: str) -> None:
    store, manager = opened()
    calls = [getattr(manager, verb) for _ in range(5)]
    given = [JobSpec(type="t") if verb == "submit" else [JobSpec(type="t")] for _ in calls]
    tasks = [asyncio.create_task(call(one)) for call, one in zip(calls, given, strict=True)]
    await asyncio.sleep(0)
    store.gate.set()
    await asyncio.gather(*tasks)
    assert store.sizes == [1, 4]
