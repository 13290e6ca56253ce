"""Lanes by limit key: told apart exactly, made once, and no burden while they are empty."""

from __future__ import annotations

import asyncio
import random

import asyncpg
import pytest

from headrace.stores.base import Inserted
from headrace.stores.postgres import PostgresStore
from headrace.stores.postgres.lanes import LaneKey
from tests.stores.postgres.jobs import draft, insert, insertion, request

KEYS = [None, "", "None", "null", "k", "K", "k ", "\u00e9", "e\u0301"]


async def _count(store: PostgresStore) -> int:
    async with store._pool.connection() as connection:
        count = await connection.fetchval(f"SELECT count(*) FROM {store._sql.quoted_schema}.lanes")
    assert isinstance(count, int)
    return count


async def test_no_key_is_taken_for_another(store: PostgresStore, postgres_url: str) -> None:
    jobs = await insert(store, *(draft(limit_key=key) for key in KEYS))
    other = await PostgresStore.open(postgres_url)
    assert await _count(store) == len(KEYS)
    found = await other.get([job.id for job in jobs])
    assert [found[job.id].limit_key for job in jobs] == KEYS
    assert [job.limit_key for job in await other.claim(request(99))] == KEYS
    await other.close()


async def test_processes_that_add_the_same_lanes_at_once_share_them(
    store: PostgresStore, postgres_url: str
) -> None:
    others = await asyncio.gather(*(PostgresStore.open(postgres_url) for _ in range(4)))
    dice = random.Random(1)

    async def submit(on: PostgresStore) -> None:
        keys = [*KEYS, *(f"k{number}" for number in range(40))]
        dice.shuffle(keys)
        answer = await on.insert(insertion([draft(limit_key=key) for key in keys]))
        assert isinstance(answer, Inserted)

    await asyncio.gather(*(submit(on) for on in (store, *others)))
    assert await _count(store) == len(KEYS) + 40
    for one in others:
        await one.close()


async def test_the_database_refuses_a_lane_twice(store: PostgresStore) -> None:
    await insert(store, draft(), draft(limit_key="k"))
    async with store._pool.connection() as connection:
        for key in (None, "k"):
            with pytest.raises(asyncpg.UniqueViolationError) as caught:
                await connection.execute(
                    f"INSERT INTO {store._sql.quoted_schema}.lanes"
                    " (tenant, queue, type, priority, limit_key)"
                    " VALUES ('default', 'default', 'send', 2, $1)",
                    key,
                )
            assert caught.value.constraint_name == "lanes_identity"


async def test_asking_for_a_lane_does_not_make_it(store: PostgresStore) -> None:
    await insert(store, draft())
    known = await store._lanes.known(
        [
            LaneKey("default", "default", "send", 2, None),
            LaneKey("default", "default", "send", 2, "k"),
        ]
    )
    assert known == [1, None]
    assert await _count(store) == 1


@pytest.mark.parametrize("idle", [0, 500])
async def test_claims_find_the_same_jobs_among_few_lanes_and_many(
    store: PostgresStore, idle: int
) -> None:
    """Few are probed one by one; among many, only those with waiting jobs are looked for."""
    dice = random.Random(2)
    await store._lanes.of([draft(queue="idle", limit_key=f"k{number}") for number in range(idle)])
    waiting = list(
        await insert(
            store,
            *(
                draft(
                    queue=dice.choice("ab"),
                    priority=dice.randrange(5),
                    limit_key=dice.choice([None, "k"]),
                    tags=dice.choice([(), ("x",), ("x", "y")]),
                )
                for _ in range(60)
            ),
        )
    )
    waiting.sort(key=lambda job: (job.priority, job.run_at, job.seq))
    while waiting:
        tags, queue = dice.choice([(), ("x",), ("y", "x")]), dice.choice("ab")
        wanted = [job for job in waiting if job.queue == queue and {*tags} <= {*job.tags}][:3]
        taken = await store.claim(request(3, queues=[queue], tags=tags))
        assert [job.id for job in taken] == [job.id for job in wanted]
        waiting = [job for job in waiting if job not in wanted]
