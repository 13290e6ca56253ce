"""Which jobs a claim takes when they lie in many lanes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from headrace.model import Job, Priority
from headrace.stores.base import GATE, ClaimRequest, Head, Pause, Record, Share
from headrace.stores.columns import LaneKey
from headrace.stores.sqlite import SqliteStore
from tests.stores.sqlite.samples import NOW, insert, new_job, request


def in_order(jobs: Sequence[Job]) -> list[Job]:
    return sorted(jobs, key=lambda job: (job.priority, job.run_at, job.seq))


def lane_of(item: Job | Head) -> LaneKey:
    return LaneKey(item.tenant, item.queue, item.type, item.priority, item.limit_key)


def seqs(jobs: Sequence[Job]) -> list[int]:
    return [job.seq for job in jobs]


async def scatter(store: SqliteStore, count: int, seed: int, spread_seconds: int) -> Sequence[Job]:
    """Jobs in up to 162 lanes, many with the same time; some are not due, some have tags."""
    dice = random.Random(seed)
    return await insert(
        store,
        *(
            new_job(
                tenant=dice.choice(["a", "b", "c"]),
                queue=dice.choice(["q1", "q2", "q3"]),
                type=dice.choice(["x", "y"]),
                priority=dice.choice([Priority.HIGH, Priority.NORMAL, Priority.BULK]),
                limit_key=dice.choice([None, "k1", "k2"]),
                run_at=NOW + timedelta(seconds=dice.randrange(-spread_seconds, 10)),
                tags=tuple(sorted(dice.sample(["r", "s", "t"], dice.randrange(3)))),
            )
            for _ in range(count)
        ),
    )


def matches(job: Job, wanted: ClaimRequest) -> bool:
    return (
        job.run_at <= wanted.now
        and wanted.tenant in (None, job.tenant)
        and (wanted.queues is None or job.queue in wanted.queues)
        and (wanted.types is None or job.type in wanted.types)
        and set(wanted.tags) <= set(job.tags)
    )


FILTERS: list[dict[str, Any]] = [
    {},
    {"tenant": "a"},
    {"queues": ["q1", "q3"], "types": ["x"]},
    {"tags": ["r"]},
    {"tags": ["s", "r"], "tenant": "b"},
    {"tags": ["r", "none"]},
    {"queues": []},
]


@pytest.mark.parametrize("spread_seconds", [1, 1000])
@pytest.mark.parametrize("limit", [1, 7, 50, 1000])
@pytest.mark.parametrize("filters", FILTERS, ids=str)
async def test_lanes_are_merged_in_order(
    store: SqliteStore, filters: dict[str, Any], limit: int, spread_seconds: int
) -> None:
    jobs = await scatter(store, 600, limit, spread_seconds)
    wanted = request(limit, **filters)
    left = [job for job in in_order(jobs) if matches(job, wanted)]
    for _ in range(3):
        assert seqs(await store.claim(wanted)) == seqs(left[:limit])
        left = left[limit:]


@pytest.mark.parametrize("tags", [[], ["r"]])
async def test_lanes_of_one_time_are_read_on_where_they_were_left(
    store: SqliteStore, tags: list[str]
) -> None:
    """One lane gives more than its share: chunk after chunk of jobs that differ only in seq."""
    types = ["x"] * 100 + list("abcdefghi")
    jobs = await insert(store, *(new_job(type=type_, tags=("r",)) for type_ in types))
    assert seqs(await store.claim(request(90, tags=tags))) == seqs(jobs)[:90]
    assert seqs(await store.claim(request(90, tags=tags))) == seqs(jobs)[90:]


async def test_paused_lanes_are_passed_over(store: SqliteStore) -> None:
    jobs = await scatter(store, 300, 1, 100)
    await store.pause(Pause("q1", None, NOW))
    await store.pause(Pause("q2", "a", NOW))
    taken = await store.claim(request(1000))
    assert seqs(taken) == seqs(
        [
            job
            for job in in_order(jobs)
            if job.run_at <= NOW and job.queue != "q1" and (job.queue, job.tenant) != ("q2", "a")
        ]
    )
    assert await store.resume("q1", None)
    assert {job.queue for job in await store.claim(request(1000))} == {"q1"}


@pytest.mark.parametrize("queues", [None, ["q1", "q2", "q3"], ["q2"]])
async def test_gated_lanes_are_passed_over(store: SqliteStore, queues: list[str] | None) -> None:
    jobs = await scatter(store, 300, 1, 100)
    await store.pause(Pause("q3", "a", NOW))
    await store.put_record(Record(kind=GATE, name="q2"))
    await store.put_record(Record(kind="other", name="q1"))
    open_jobs = [
        job
        for job in in_order(jobs)
        if job.run_at <= NOW
        and job.queue in (queues or ["q1", "q2", "q3"])
        and (job.queue, job.tenant) != ("q3", "a")
    ]
    heads = await store.heads(request(1000, queues=queues))
    assert sum(head.jobs for head in heads) == len(open_jobs)
    taken = await store.claim(request(1000, queues=queues))
    assert seqs(taken) == seqs([job for job in open_jobs if job.queue != "q2"])
    (gate,) = await store.records(GATE)
    assert await store.delete_record(gate)
    assert {job.queue for job in await store.claim(request(1000, queues=queues))} == {"q2"}


@pytest.mark.parametrize("limit", [1, 3, 1000])
@pytest.mark.parametrize("filters", FILTERS, ids=str)
async def test_heads_are_the_fronts_of_all_lanes(
    store: SqliteStore, filters: dict[str, Any], limit: int
) -> None:
    wanted = request(limit, **filters)
    lanes: dict[LaneKey, list[Job]] = {}
    for job in in_order(await scatter(store, 600, limit, 20)):
        if matches(job, wanted):
            lanes.setdefault(lane_of(job), []).append(job)
    heads = await store.heads(wanted)
    assert {lane_of(head): (head.run_at, head.jobs) for head in heads} == {
        key: (jobs[0].run_at, min(len(jobs), limit)) for key, jobs in lanes.items()
    }
    assert len(heads) == len(lanes)
    shares = [Share(**lane_of(head)._asdict(), jobs=2) for head in heads]
    taken = await store.claim_shares(wanted, shares, [])
    expected = [job for head in heads for job in lanes[lane_of(head)][:2]]
    assert taken is not None
    assert seqs(taken) == seqs(expected[:limit])


async def test_a_lane_that_is_named_twice_is_read_on(store: SqliteStore) -> None:
    jobs = await insert(store, *(new_job(limit_key="k") for _ in range(5)))
    share = Share(**lane_of(jobs[0])._asdict(), jobs=2)
    taken = await store.claim_shares(request(9), [share, share, replace(share, jobs=-1)], [])
    assert taken is not None
    assert seqs(taken) == seqs(jobs)[:4]


async def test_a_lane_that_another_store_made_is_found(store: SqliteStore) -> None:
    other = await SqliteStore.open(store.path)
    await insert(store, new_job(type="one"))
    await insert(other, new_job(type="two"), new_job(type="one"))
    await insert(store, new_job(type="two"))
    assert [job.type for job in await store.claim(request(9))] == ["one", "two", "one", "two"]
    await other.close()
