"""Pauses and workers."""

from __future__ import annotations

from headrace.stores.base import Pause, WorkerSeen
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.store.suite import at, opened, suite


@suite.case("pause", "is listed until it is resumed; pausing again keeps the first time")
async def pauses(env: Env) -> None:
    store = await opened(env)
    await store.pause(Pause("q", None, at(1)))
    await store.pause(Pause("q", "acme", at(2)))
    await store.pause(Pause("q", None, at(3)))
    assert list(await store.pauses()) == [Pause("q", None, at(1)), Pause("q", "acme", at(2))]
    assert not await store.resume("other", None)
    assert await store.resume("q", "acme")
    assert list(await store.pauses()) == [Pause("q", None, at(1))]


@suite.case("announce", "keeps the last word of each worker")
async def workers(env: Env) -> None:
    store = await opened(env)
    whole = WorkerSeen(
        worker="b", seen_at=at(2), tenant="acme", queues=("q1", "q2"), types=("t",), tags=("x",)
    )
    await store.announce(WorkerSeen(worker="b", seen_at=at(1)))
    await store.announce(WorkerSeen(worker="a", seen_at=at(1)))
    await store.announce(whole)
    found = list(await store.workers(at(0)))
    assert [worker.worker for worker in found] == ["a", "b"]
    assert (found[0].queues, found[0].types, tuple(found[0].tags)) == (None, None, ())
    assert (found[1].seen_at, found[1].tenant) == (at(2), "acme")
    assert (tuple(found[1].queues or ()), tuple(found[1].types or ()), tuple(found[1].tags)) == (
        ("q1", "q2"),
        ("t",),
        ("x",),
    )
    assert [worker.worker for worker in await store.workers(at(2))] == ["b"]
    assert not await store.workers(at(2.000001))


@suite.case("announce", "keeps how many slots a worker has and how many are taken, if it says so")
async def slots(env: Env) -> None:
    store = await opened(env)

    async def told() -> list[tuple[int | None, int | None]]:
        return [(worker.slots, worker.busy) for worker in await store.workers(at(0))]

    await store.announce(WorkerSeen(worker="a", seen_at=at(1), slots=50, busy=0))
    await store.announce(WorkerSeen(worker="b", seen_at=at(1)))
    assert await told() == [(50, 0), (None, None)]
    await store.announce(WorkerSeen(worker="a", seen_at=at(2), slots=50, busy=50))
    await store.announce(WorkerSeen(worker="b", seen_at=at(2), slots=2**31 - 1, busy=2**31 - 1))
    assert await told() == [(50, 50), (2**31 - 1, 2**31 - 1)]
    await store.announce(WorkerSeen(worker="a", seen_at=at(3)))
    assert await told() == [(None, None), (2**31 - 1, 2**31 - 1)]
