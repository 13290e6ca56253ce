"""What happens when two processes do related things at the same moment."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from headrace.clock import ManualClock
from headrace.errors import HeadraceError
from headrace.manager import JobManager
from headrace.model import DependencyKind, Edge, State
from headrace.spec import JobSpec
from headrace.stores.base import Clash, Fence, Inserted, KeyHold, KeyScope
from headrace.stores.postgres import PostgresStore
from headrace.stores.postgres.errors import is_conflict
from tests.stores.postgres.jobs import NOW, completion, draft, insert, insertion, request


@pytest.fixture
async def other(postgres_url: str, store: PostgresStore) -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(postgres_url)
    yield opened
    await opened.close()


async def test_a_child_inserted_while_its_parent_ends_is_settled(
    store: PostgresStore, other: PostgresStore
) -> None:
    """The insertion holds its parent; the completion waits for it, and then sees the new edge."""
    (parent,) = await insert(store, draft())
    (claimed,) = await store.claim(request())
    child = draft(state=State.BLOCKED)
    edge = Edge(parent.id, child.id, DependencyKind.AFTER)
    async with store._pool.connection() as connection:
        transaction = connection.transaction()
        await transaction.start()
        answer = await store.on(connection).insert(
            insertion([child], edges=[edge], parents={parent.id: None})
        )
        assert isinstance(answer, Inserted)
        ending = asyncio.create_task(other.commit(completion([claimed])))
        await asyncio.sleep(0.1)
        assert not ending.done()
        await transaction.commit()
    committed = await asyncio.wait_for(ending, 5)
    assert list(committed.touched) == [replace(edge, outcome=State.COMPLETED)]


async def test_a_parent_that_ends_first_makes_the_insertion_clash(
    store: PostgresStore, other: PostgresStore
) -> None:
    (parent,) = await insert(store, draft())
    (claimed,) = await store.claim(request())
    child = draft(state=State.BLOCKED)
    edge = Edge(parent.id, child.id, DependencyKind.AFTER)
    async with store._pool.connection() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await store.on(connection).commit(completion([claimed]))
        inserting = asyncio.create_task(
            other.insert(insertion([child], edges=[edge], parents={parent.id: None}))
        )
        await asyncio.sleep(0.1)
        assert not inserting.done()
        await transaction.commit()
    assert await asyncio.wait_for(inserting, 5) == Clash(parents=[parent.id])
    assert await store.get([child.id]) == {}


async def test_children_and_parents_at_once_leave_no_child_behind(
    store: PostgresStore, other: PostgresStore
) -> None:
    """Whatever the order of submissions and completions, every child is released exactly once."""
    clock = ManualClock(NOW)
    here, there = (JobManager(one, clock=clock) for one in (store, other))
    dice = random.Random(1)
    parents = (await here.submit_many([JobSpec(type="p") for _ in range(40)])).jobs
    claimed = await here.claim("w", types=["p"], limit=40)

    async def bear(manager: JobManager) -> None:
        for _ in range(30):
            after = [job.id for job in dice.sample(parents, 3)]
            await manager.submit(JobSpec(type="c", after=after))

    async def finish(manager: JobManager, mine: list[int]) -> None:
        for index in mine:
            await manager.complete(claimed[index].id, claimed[index].token)
            await asyncio.sleep(0)

    await asyncio.gather(
        bear(here),
        bear(there),
        bear(there),
        finish(here, list(range(20))),
        finish(there, list(range(20, 40))),
    )
    await here.sweep()
    stats = await here.stats()
    assert stats.states[State.BLOCKED] == 0
    assert stats.states[State.PENDING] == 90
    assert await store.unseen(10) == []


async def test_groups_that_overlap_in_opposite_order_never_deadlock(
    store: PostgresStore, other: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deadlock would be tried again and go unnoticed, so every conflict is written down."""
    conflicts: list[BaseException] = []

    def note(error: BaseException) -> bool:
        if is_conflict(error):
            conflicts.append(error)
        return is_conflict(error)

    monkeypatch.setattr("headrace.stores.postgres.session.is_conflict", note)
    jobs = await insert(store, *(draft(lease_seconds=1000.0) for _ in range(50)))
    claimed = list(await store.claim(request(50)))
    fences = {Fence(job.id, job.token or ""): 50.0 for job in claimed}
    backwards = dict(reversed(fences.items()))

    async def beat(on: PostgresStore, leases: dict[Fence, float]) -> None:
        for _ in range(30):
            assert len(await on.extend(leases, NOW)) == 50

    await asyncio.wait_for(
        asyncio.gather(beat(store, fences), beat(other, backwards), beat(other, fences)), 30
    )
    first, second = completion(claimed), completion(claimed[::-1])
    answers = await asyncio.gather(
        store.commit(first), other.commit(second), other.commit(first), store.commit(second)
    )
    assert sum(sum(answer.applied) for answer in answers) == 50
    assert len(jobs) == 50
    assert conflicts == []


async def test_one_key_one_job(store: PostgresStore, other: PostgresStore) -> None:
    """Of many insertions with the same keys, in any order, one stores them and the others clash."""

    def hold(job_id: str, key: str) -> KeyHold:
        return KeyHold(KeyScope("default", "default", "send", key), job_id, None, True)

    async def attempt(on: PostgresStore, number: int) -> Inserted | Clash:
        jobs = [draft(key="a"), draft(key="b")]
        keys = [hold(jobs[0].id, "a"), hold(jobs[1].id, "b")]
        return await on.insert(insertion(jobs, keys=keys if number % 2 else keys[::-1]))

    answers = await asyncio.gather(
        *(attempt(on, number) for number in range(10) for on in (store, other))
    )
    assert sum(isinstance(answer, Inserted) for answer in answers) == 1
    clashes = [answer for answer in answers if isinstance(answer, Clash)]
    assert all(
        {scope.key for scope in clash.keys} == {"a", "b"} and not clash.ids for clash in clashes
    )


async def test_one_id_one_job(store: PostgresStore, other: PostgresStore) -> None:
    """Batches that share ids in opposite order: one is stored, the others name what they clash with."""
    ids = [f"id-{number}" for number in range(20)]

    async def attempt(on: PostgresStore, names: list[str]) -> Inserted | Clash:
        return await on.insert(insertion([draft(id=name) for name in names]))

    answers = await asyncio.gather(
        *(attempt(on, names) for on in (store, other) for names in (ids, ids[::-1], ids))
    )
    assert sum(isinstance(answer, Inserted) for answer in answers) == 1
    assert all(sorted(answer.ids) == sorted(ids) for answer in answers if isinstance(answer, Clash))


async def test_a_spawner_that_loses_its_lease_spawns_nothing(
    store: PostgresStore, other: PostgresStore
) -> None:
    clock = ManualClock(NOW)
    manager = JobManager(store, clock=clock)
    await manager.submit(JobSpec(type="p"))
    (job,) = await manager.claim("w")

    async def spawn() -> int:
        made = 0
        try:
            for _ in range(50):
                await manager.spawn(job.id, job.token or "", [JobSpec(type="c")])
                made += 1
        except HeadraceError:
            pass
        return made

    spawning = asyncio.create_task(spawn())
    await asyncio.sleep(0.02)
    await JobManager(other, clock=clock).expire_worker("w")
    made = await spawning
    stats = await manager.stats()
    assert stats.total == made + 1


async def test_a_crowd_of_claims_reaches_past_what_others_hold(store: PostgresStore) -> None:
    """Each claim must reach further; that all of them learn so at once stops none of them early."""
    await insert(store, *(draft() for _ in range(100)))
    async with store._pool.connection() as other, other.transaction():
        await other.execute(
            f"SELECT FROM {store._sql.schema}.jobs ORDER BY run_at, seq LIMIT 60 FOR NO KEY UPDATE"
        )
        answers = await asyncio.gather(*(store.claim(request(2)) for _ in range(20)))
    assert [len(jobs) for jobs in answers] == [2] * 20
