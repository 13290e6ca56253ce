"""Claims by shares among others: behind a gate one at a time, and never waiting for a job."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from headrace.model import State
from headrace.stores.base import GATE, Query, Record, Share
from headrace.stores.postgres import PostgresStore
from tests.stores.postgres.jobs import draft, insert, request


def share(jobs: int, **lane: str) -> Share:
    given = {"tenant": "default", "queue": "default", "type": "send", "limit_key": None} | lane
    return Share(jobs=jobs, priority=2, **given)  # type: ignore[arg-type]


async def _gate(store: PostgresStore) -> Record:
    (gate,) = await store.records(GATE, ["default"])
    return gate


async def test_a_lane_that_comes_twice_goes_on_where_it_was(store: PostgresStore) -> None:
    jobs = await insert(store, *(draft(limit_key=key) for _ in range(5) for key in "ab"))
    a, b = ([job.id for job in jobs if job.limit_key == key] for key in "ab")
    shares = [share(2, limit_key="a"), share(1, limit_key="b"), share(9, limit_key="a")]
    taken = await store.claim_shares(request(4), shares, [])
    assert [job.id for job in taken or ()] == [a[0], a[1], b[0], a[2]]
    taken = await store.claim_shares(request(99), shares, [])
    assert [job.id for job in taken or ()] == [a[3], a[4], b[1]]


async def test_jobs_that_others_hold_are_passed_over(
    store: PostgresStore, postgres_url: str
) -> None:
    jobs = await insert(store, *(draft() for _ in range(6)))
    other = await PostgresStore.open(postgres_url)
    async with store._pool.connection() as connection, connection.transaction():
        await connection.execute(
            f"SELECT FROM {store._sql.quoted_schema}.jobs WHERE seq <= $1 FOR UPDATE", jobs[1].seq
        )
        taken = await asyncio.wait_for(other.claim_shares(request(9), [share(3)], []), 5)
    assert [job.id for job in taken or ()] == [job.id for job in jobs[2:5]]
    await other.close()


@pytest.mark.parametrize("commit", [True, False])
async def test_behind_a_gate_the_second_waits_for_the_first(
    store: PostgresStore, postgres_url: str, commit: bool
) -> None:
    """And then finds the gate moved on, unless the first has come to nothing."""
    jobs = await insert(store, *(draft() for _ in range(4)))
    assert await store.put_record(Record(kind=GATE, name="default"))
    gate = await _gate(store)
    other = await PostgresStore.open(postgres_url)
    async with store._pool.connection() as connection:
        transaction = connection.transaction()
        await transaction.start()
        first = await store.on(connection).claim_shares(request(2), [share(2)], [gate])
        assert [job.id for job in first or ()] == [job.id for job in jobs[:2]]
        second = asyncio.create_task(other.claim_shares(request(2), [share(2)], [gate]))
        await asyncio.sleep(0.1)
        assert not second.done()
        await (transaction.commit() if commit else transaction.rollback())
    taken = await asyncio.wait_for(second, 5)
    if commit:
        assert taken is None
    else:
        assert [job.id for job in taken or ()] == [job.id for job in jobs[:2]]
    assert (await _gate(store)).version == 2
    await other.close()


async def test_of_many_that_make_a_gate_one_wins(store: PostgresStore, postgres_url: str) -> None:
    """Two gates each, in either order, one of which is new to all: nobody is left with half of them."""
    await insert(store, *(draft() for _ in range(20)))
    assert await store.put_record(Record(kind=GATE, name="default"))
    gates = [await _gate(store), *(Record(kind=GATE, name=name) for name in ("a", "z"))]
    other = await PostgresStore.open(postgres_url)
    answers = await asyncio.gather(
        *(
            on.claim_shares(request(1), [share(1)], [replace(one, body_json=body) for one in order])
            for on in (store, other)
            for order, body in ((gates, b"1"), (gates[::-1], b"2"), (gates[1:], b"3"))
        )
    )
    assert sum(taken is not None for taken in answers) == 1
    stored = await store.records(GATE)
    assert len({one.body_json for one in stored if one.version > (one.name == "default")}) == 1
    assert len(await store.find(Query(states=[State.RUNNING]))) == 1
    await other.close()
