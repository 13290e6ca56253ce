"""The claim in SQL: equal to the pure rule, exact in its order, safe among many."""

from __future__ import annotations

import asyncio
import random
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from headrace import lifecycle
from headrace.model import Category, Failure, Job, State
from headrace.stores.base import Commit, EventQuery, Inserted, Insertion
from headrace.stores.postgres import PostgresStore
from tests.stores.postgres.jobs import NOW, draft, insert, request


def _random_job(dice: random.Random, number: int) -> Job:
    """Any waiting job, with whatever past, at microseconds that do not look round."""

    def moment(low: int, high: int) -> datetime:
        return NOW + timedelta(microseconds=dice.randint(low, high))

    def maybe(value: Any) -> Any:
        return value if dice.random() < 0.5 else None

    ran = dice.random() < 0.6
    return draft(
        id=f"job-{number}-{dice.getrandbits(40)}",
        tenant=dice.choice(["default", "acme", "größe"]),
        queue=dice.choice(["default", 'q"uote', "b\\ack"]),
        type=dice.choice(["send", "日本"]),
        tags=tuple(
            sorted(dice.sample(["a", "b=1", 'q"u,o\\te', "{}", "NULL"], dice.randint(0, 4)))
        ),
        priority=dice.randint(0, 4),
        payload_json=b'{"n":%d}' % number,
        state=dice.choice([State.PENDING, State.RETRYING, State.LOST]),
        version=dice.randint(1, 2**20),
        run_at=moment(-(10**12), 0),
        updated_at=moment(-(10**12), 10**6),  # a clock that was set back
        attempt=dice.randint(0, 1000) if ran else 0,
        failures=dice.randint(0, 20) if ran else 0,
        losses=dice.randint(0, 20) if ran else 0,
        max_attempts=None,
        lease_seconds=dice.choice([None, 30.0, 0.1234567, 1e-6, 3.3333335, 86400 * 3650.0]),
        assignee=maybe("an earlier wörker") if ran else None,
        assigned_at=maybe(moment(-(10**12), 0)) if ran else None,
        scheduled_at=maybe(moment(-(10**12), 0)) if ran else None,
        started_at=maybe(moment(-(10**12), 0)) if ran else None,
        last_failed_at=maybe(moment(-(10**12), 0)) if ran else None,
        failure=maybe(Failure("broke", Category.TIMEOUT, maybe("E1"))) if ran else None,
        result_json=maybe(b"[1]") if ran else None,
        progress=maybe(0.1) if ran else None,
        progress_note=maybe("häl\nf") if ran else None,
        checkpoint_json=maybe(b'{"at":1}') if ran else None,
    )


async def _store_as_is(store: PostgresStore, jobs: list[Job]) -> list[Job]:
    """Insert jobs with all their past: `lifecycle.submit` would make them newborn."""
    events = [lifecycle.submit(job)[1] for job in jobs]
    answer = await store.insert(Insertion(jobs=jobs, events=events, now=NOW))
    assert isinstance(answer, Inserted)
    return list(answer.jobs)


@pytest.mark.parametrize("seed", range(4))
async def test_a_claim_writes_what_the_lifecycle_says(store: PostgresStore, seed: int) -> None:
    dice = random.Random(seed)
    jobs = await _store_as_is(store, [_random_job(dice, number) for number in range(60)])
    assert await store.get([job.id for job in jobs]) == {job.id: job for job in jobs}
    seconds = dice.choice([None, 12.3456789])
    command = lifecycle.Claim(worker="w1", nonce="n", lease_seconds=seconds)
    ordered = sorted(jobs, key=lambda job: (job.priority, job.run_at, job.seq))
    wanted = [lifecycle.apply(job, command, NOW) for job in ordered]
    tail = await store.tail()

    taken = await store.claim(request(100, lease_seconds=seconds))

    assert list(taken) == [change.after for change in wanted]
    stored = await store.get([job.id for job in jobs])
    assert [stored[job.id] for job in taken] == list(taken)
    events = await store.events(EventQuery(after=tail, limit=100))
    assert [replace(event, seq=0, cursor="") for event in events] == [
        change.event for change in wanted
    ]


@pytest.mark.parametrize("seed", range(3))
async def test_the_order_is_exact_over_many_lanes_and_filters(
    store: PostgresStore, seed: int
) -> None:
    dice = random.Random(seed)
    jobs = await _store_as_is(store, [_random_job(dice, number) for number in range(120)])
    later = draft(run_at=NOW + timedelta(microseconds=1), priority=0)
    await insert(store, later)
    waiting = sorted(jobs, key=lambda job: (job.priority, job.run_at, job.seq))
    while waiting:
        limit = dice.randint(1, 9)
        tenant = dice.choice([None, "acme"])
        queues = dice.choice([None, ["default"], ["default", "b\\ack"]])
        types = dice.choice([None, ["send"]])
        tags = dice.choice([(), (), ("a",), ("a", 'q"u,o\\te'), ("{}",)])
        matching = [
            job
            for job in waiting
            if (tenant is None or job.tenant == tenant)
            and (queues is None or job.queue in queues)
            and (types is None or job.type in types)
            and set(tags) <= set(job.tags)
        ]
        taken = await store.claim(
            request(limit, tenant=tenant, queues=queues, types=types, tags=tags)
        )
        assert [job.id for job in taken] == [job.id for job in matching[:limit]]
        gone = {job.id for job in taken}
        waiting = [job for job in waiting if job.id not in gone]
    assert await store.claim(request(5)) == []


async def test_many_claims_at_once_share_the_jobs(store: PostgresStore, postgres_url: str) -> None:
    """None twice and none left, though all of them reach for the same head of the line."""
    for _ in range(4):
        await insert(store, *(draft() for _ in range(250)))
    other = await PostgresStore.open(postgres_url)

    async def work(on: PostgresStore, name: str) -> list[str]:
        got: list[str] = []
        while jobs := await on.claim(replace(request(7), worker=name)):
            got += [job.id for job in jobs]
        return got

    got = await asyncio.gather(
        *(work(store, f"a{n}") for n in range(8)), *(work(other, f"b{n}") for n in range(8))
    )
    await other.close()
    ids = [job_id for some in got for job_id in some]
    assert len(ids) == len(set(ids)) == 1000


async def test_a_claim_reaches_past_jobs_that_others_hold(
    store: PostgresStore, postgres_url: str
) -> None:
    """Forty jobs at the head are locked by a claim under way: the next ones are taken, without waiting."""
    jobs = await insert(store, *(draft() for _ in range(60)))
    schema = store._sql.quoted_schema
    async with store._pool.connection() as connection, connection.transaction():
        await connection.execute(
            f"SELECT FROM {schema}.jobs WHERE seq <= $1 FOR UPDATE", jobs[39].seq
        )
        other = await PostgresStore.open(postgres_url)
        taken = await asyncio.wait_for(other.claim(request(10)), 5)
        assert [job.id for job in taken] == [job.id for job in jobs[40:50]]
        await other.close()


async def test_what_a_claim_writes_can_be_committed_at_once(store: PostgresStore) -> None:
    """`known` jobs: the row a claim answers with is the row, version and all."""
    await insert(store, *(draft(tags=("a",)) for _ in range(5)))
    taken = await store.claim(request(5, tags=("a",)))
    changes = [
        lifecycle.apply(job, lifecycle.Release(token=job.token), NOW + timedelta(seconds=1))
        for job in taken
    ]
    assert all((await store.commit(Commit(changes=changes))).applied)
    again = await store.claim(request(5, tags=("a",), now=NOW + timedelta(seconds=2)))
    assert [job.id for job in again] == [job.id for job in taken]
