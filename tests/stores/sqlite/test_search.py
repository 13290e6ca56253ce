"""Finding gives the same jobs whichever way it goes about it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from headrace import lifecycle
from headrace.model import CLAIMABLE, TERMINAL, Category, Failure, Job, State
from headrace.stores.base import Commit, Query
from headrace.stores.sqlite import SqliteStore, read
from tests.stores.sqlite.samples import NOW, insert, new_job, request


async def varied(store: SqliteStore) -> Sequence[Job]:
    """Jobs of several tenants, queues, ages and tags, in most states."""
    dice = random.Random(1)
    jobs = await insert(
        store,
        *(
            new_job(
                tenant=dice.choice(["a", "b"]),
                queue=dice.choice(["q1", "q2"]),
                type=dice.choice(["x", "y"]),
                tags=tuple(sorted(dice.sample(["r", "s"], dice.randrange(3)))),
                created_at=NOW + timedelta(seconds=number),
            )
            for number in range(120)
        ),
    )
    blocked = [new_job(state=State.BLOCKED, tenant="a") for _ in range(5)]
    await insert(store, *blocked)
    leased = await store.claim(request(60))
    changes = []
    for number, job in enumerate(leased[:40]):
        now = NOW + timedelta(seconds=number)
        failed = lifecycle.Fail(
            token=None, failure=Failure("no", Category.TEMPORARY), retry=number % 4 == 0
        )
        done = lifecycle.Complete(token=None)
        changes.append(lifecycle.apply(job, done if number % 2 else failed, now))
    await store.commit(Commit(changes=changes))
    assert len(jobs) == 120
    return await store.find(Query(limit=1000))


def matches(job: Job, query: Query) -> bool:
    return (
        query.tenant in (None, job.tenant)
        and (query.ids is None or job.id in query.ids)
        and (query.queues is None or job.queue in query.queues)
        and (query.types is None or job.type in query.types)
        and (query.states is None or job.state in query.states)
        and set(query.tags) <= set(job.tags)
        and query.assignee in (None, job.assignee)
        and (query.created_from is None or job.created_at >= query.created_from)
        and (query.created_before is None or job.created_at < query.created_before)
        and (
            query.finalized_before is None
            or (job.finalized_at is not None and job.finalized_at < query.finalized_before)
        )
    )


def random_query(dice: random.Random, jobs: Sequence[Job]) -> Query:
    def sometimes(value: Any) -> Any:
        return value if dice.random() < 0.3 else None

    return Query(
        tenant=sometimes(dice.choice(["a", "b", "none"])),
        ids=sometimes([job.id for job in dice.sample(list(jobs), 20)]),
        queues=sometimes(dice.choice([["q1"], ["q1", "q2"], []])),
        types=sometimes(["x"]),
        states=sometimes(dice.sample(list(State), dice.randrange(1, 5))),
        tags=sometimes(dice.choice([["r"], ["r", "s"], ["none"]])) or (),
        assignee=sometimes("w1"),
        created_from=sometimes(NOW + timedelta(seconds=dice.randrange(120))),
        created_before=sometimes(NOW + timedelta(seconds=dice.randrange(120))),
        finalized_before=sometimes(NOW + timedelta(seconds=dice.randrange(40))),
        newest_first=dice.random() < 0.5,
        limit=dice.choice([1, 5, 1000]),
    )


@pytest.mark.parametrize("candidates_max", [0, 10, 10_000])
async def test_every_plan_finds_the_same(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, candidates_max: int
) -> None:
    monkeypatch.setattr(read, "CANDIDATES_MAX", candidates_max)
    jobs = await varied(store)
    assert {job.state for job in jobs} >= {*CLAIMABLE, State.BLOCKED, State.RUNNING} - {State.LOST}
    assert len({job.state for job in jobs} & TERMINAL) == 2
    dice = random.Random(candidates_max)
    for _ in range(200):
        query = random_query(dice, jobs)
        wanted = [job for job in jobs if matches(job, query)]
        if query.newest_first:
            wanted.reverse()
        # Page by page, to the end.
        found: list[Job] = []
        for _ in range(len(jobs) + 1):
            page = await store.find(query)
            found += page
            if len(page) < query.limit or len(found) > 20:
                break
            query = replace(query, after_seq=page[-1].seq)
        assert found == wanted[: len(found)]
        assert len(found) == len(wanted) or len(found) > 20


async def test_no_limit_finds_nothing(store: SqliteStore) -> None:
    await insert(store, new_job())
    assert await store.find(Query(limit=0)) == []
    assert await store.find(Query(limit=-1)) == []
    assert await store.lapsed(NOW, -1) == []
