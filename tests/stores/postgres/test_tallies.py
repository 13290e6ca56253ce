"""Counting without reading the jobs: what was tallied, and the events since, against the jobs themselves."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from headrace import JobManager, JobSpec
from headrace.clock import ManualClock
from headrace.model import State
from headrace.stores.base import Tally
from headrace.stores.postgres import PostgresStore
from tests.spark.wild import wild_on

ONE_BY_ONE = """
SELECT lanes.tenant, lanes.queue, jobs.state, count(*),
    count(*) FILTER (WHERE jobs.run_at > $1 AND jobs.state IN ('pending', 'retrying', 'lost')),
    sum(jobs.failures)
FROM headrace.jobs INNER JOIN headrace.lanes ON lanes.id = jobs.lane
GROUP BY lanes.tenant, lanes.queue, jobs.state
"""


async def run(store: PostgresStore, sql: str, *arguments: Any) -> Any:
    async def work(connection: Any) -> Any:
        return await connection.fetch(sql.replace("headrace.", f"{store._sql.schema}."), *arguments)

    session: Any = store._session
    return await session.write_by(work)


async def one_by_one(store: PostgresStore, now: Any) -> list[Tally]:
    rows = await run(store, ONE_BY_ONE, now)
    found = [
        Tally(
            tenant=tenant,
            queue=queue,
            state=State(state),
            jobs=jobs,
            delayed=delayed,
            failures=int(failures),
        )
        for tenant, queue, state, jobs, delayed, failures in rows
    ]
    return sorted(found, key=lambda one: (one.tenant, one.queue, one.state))


async def test_tallies_equal_what_is_counted_after_a_wild_history(postgres_url: str) -> None:
    store = await PostgresStore.open(postgres_url)
    wild = await wild_on(store, 7)
    for round_ in range(12):
        await wild.steps(40)
        now = wild.clock.now()
        if round_ % 3 == 0:
            await run(store, "SELECT headrace.fold_tallies(TRUE)")
        assert list(await store.count(now)) == await one_by_one(store, now)
    ended = [job.id async for job in wild.manager.find() if job.is_terminal]
    await wild.manager.delete(ended)
    assert list(await store.count(now)) == await one_by_one(store, now)
    await run(store, "SELECT headrace.fold_tallies(TRUE)")
    assert list(await store.count(now)) == await one_by_one(store, now)
    assert not await run(store, "SELECT FROM headrace.untallied")
    await store.trim([], now, 10_000)
    assert list(await store.count(now)) == await one_by_one(store, now)
    await store.close()


async def test_counted_while_others_write_and_tally_it_is_right_at_every_moment(
    postgres_url: str,
) -> None:
    """Each count is of one snapshot: jobs that move between states are neither missed nor counted twice."""
    stores = [await PostgresStore.open(postgres_url) for _ in range(3)]
    managers = [JobManager(store, clock=ManualClock()) for store in stores]
    jobs = 60
    await managers[0].submit_many([JobSpec(type="t", max_attempts=None) for _ in range(jobs)])
    stop = asyncio.Event()

    async def work(manager: JobManager, dice: random.Random) -> None:
        while not stop.is_set():
            for job in await manager.claim("w", limit=dice.randint(1, 20)):
                await manager.release(job.id, job.token)

    async def tally(store: PostgresStore) -> None:
        while not stop.is_set():
            await run(store, "SELECT headrace.fold_tallies(TRUE)")

    tasks = [
        asyncio.create_task(work(managers[0], random.Random(1))),
        asyncio.create_task(work(managers[1], random.Random(2))),
        asyncio.create_task(tally(stores[1])),
    ]
    try:
        for _ in range(150):
            found = await stores[2].count(managers[2].clock.now())
            assert sum(one.jobs for one in found) == jobs, found
    finally:
        stop.set()
        await asyncio.gather(*tasks)
        for store in stores:
            await store.close()


async def test_tables_from_another_server_are_counted_one_by_one(postgres_url: str) -> None:
    """Restored where transactions have smaller numbers: what was tallied says nothing there."""
    store = await PostgresStore.open(postgres_url)
    manager = JobManager(store, clock=ManualClock())
    await manager.submit_many([JobSpec(type="t") for _ in range(3)])
    await store.count(manager.clock.now())
    await run(store, "UPDATE headrace.tally_place SET xid = '9000000000000'")
    await manager.submit_many([JobSpec(type="t") for _ in range(2)])
    (told,) = await store.count(manager.clock.now())
    assert (told.state, told.jobs) == (State.PENDING, 5)
    await store.close()
