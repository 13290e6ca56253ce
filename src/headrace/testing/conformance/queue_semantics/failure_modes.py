"""Failure Modes: a crashed worker, a store that is away, a partition."""

from __future__ import annotations

from typing import Any, cast

from headrace.contracts.queue_semantics import JobState, Queue, StaleLease
from headrace.errors import StoreError, StoreUnavailable
from headrace.manager import JobManager
from headrace.stores.base import JobStore
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.queue_semantics.suite import (
    claimed,
    open_queue,
    states,
    suite,
    token_of,
)


class AwayStore:
    """A store that cannot be reached for its next `away` writes, and does nothing in these."""

    VERBS = frozenset({"claim", "commit", "insert", "extend"})

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self.away = 0

    def __getattr__(self, name: str) -> Any:
        if name in self.VERBS and self.away:
            self.away -= 1
            raise StoreUnavailable("the store cannot be reached; nothing was written")
        return getattr(self._store, name)


@suite.case("Worker Crash", "leased jobs become reclaimable after the lease expires; none is lost")
async def worker_crash(env: Env) -> None:
    queue = await open_queue(env)
    for number in range(10):
        await queue.enqueue(f"j{number}")
    for _ in range(10):
        await claimed(queue, "crashed")
    assert await queue.claim("w2") is None
    env.clock.advance(5)
    again = [await claimed(queue, "w2") for _ in range(10)]
    assert [job.id for job in again] == [f"j{number}" for number in range(10)]
    assert await queue.claim("w2") is None


@suite.case("Store Unavailability", "a fetcher that tries again gets the job; nothing was changed")
async def fetchers_retry(env: Env) -> None:
    behind = await open_queue(env)
    store = AwayStore(behind.manager.store)
    queue = Queue(
        JobManager(cast("JobStore", store), clock=env.clock, policies=behind.manager.policies)
    )
    await queue.enqueue("j")
    before = await queue.get("j")
    store.away = 3
    for _ in range(3):
        with raises(StoreError):
            await queue.claim("w1")
        assert await queue.get("j") == before
    job = await claimed(queue)
    assert (job.id, job.lease_version) == ("j", 1)


@suite.case(
    "Store Unavailability", "committed work is preserved, uncommitted work is not claimed done"
)
async def committed_work_is_preserved(env: Env) -> None:
    behind = await open_queue(env)
    store = AwayStore(behind.manager.store)
    queue = Queue(
        JobManager(cast("JobStore", store), clock=env.clock, policies=behind.manager.policies)
    )
    await queue.enqueue("done")
    await queue.enqueue("open")
    done, unfinished = await claimed(queue), await claimed(queue)
    await queue.ack(done.id, token_of(done))
    store.away = 1
    with raises(StoreUnavailable):
        await queue.ack(unfinished.id, token_of(unfinished))
    assert await states(behind, "done", "open") == ["Succeeded", "InFlight"]
    assert (await queue.ack("open", token_of(unfinished))).state is JobState.SUCCEEDED


@suite.case("Network Partition", "a lease may expire and cause duplicate processing")
async def partition(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    cut_off = await claimed(queue, "cut off")
    env.clock.advance(60)
    other = await claimed(queue, "other")
    assert other.id == cut_off.id
    with raises(StaleLease):
        await queue.heartbeat("j", token_of(cut_off))


@suite.case("Network Partition", "at-least-once delivery is still maintained")
async def partition_delivers(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    for worker in ("w1", "w2", "w3"):
        await claimed(queue, worker)
        env.clock.advance(5)
    last = await claimed(queue, "w4")
    assert (await queue.ack("j", token_of(last))).state is JobState.SUCCEEDED
