"""What a claim costs does not grow with the backlog: not with what is due, nor with what is not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from statistics import median

import pytest

from headrace.model import Job, Priority
from headrace.stores.base import GATE, ClaimRequest, Record
from headrace.stores.sqlite import SqliteStore
from tests.stores.sqlite.backlog import fill
from tests.stores.sqlite.samples import NOW, insert, new_job, request

SMALL, LARGE = 2_000, 200_000
RATIO_MAX = 3
SOON = NOW + timedelta(seconds=1)


async def make(path: Path, jobs: int) -> Path:
    """Waiting jobs, twenty with a rare tag; a quarter are of the first priority and not due."""
    late = NOW + timedelta(days=1)
    await fill(path, jobs // 4, priority=Priority.CRITICAL, run_at=late, queue="main")
    await fill(path, jobs * 3 // 4, tag_every=jobs * 3 // 80, queue="main")
    return path


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("cost")
    return (
        asyncio.run(make(folder / "small.db", SMALL)),
        asyncio.run(make(folder / "large.db", LARGE)),
    )


async def claim_all(store: SqliteStore, wanted: ClaimRequest) -> Sequence[Job]:
    jobs = await store.claim(wanted)
    assert len(jobs) == wanted.limit
    return jobs


async def costs_in_turns(
    times: int, *calls: Callable[[], Awaitable[Sequence[object]]]
) -> list[list[float]]:
    """The seconds of each call, taken in turns: whatever else this machine does slows all."""
    costs: list[list[float]] = [[] for _ in calls]
    for _ in range(times):
        for call, spent in zip(calls, costs, strict=True):
            start = time.perf_counter()
            answer = await call()
            spent.append(time.perf_counter() - start)
            assert answer
    return costs


@pytest.mark.parametrize(
    ("wanted", "times"),
    [
        (request(1, now=SOON, tags=["rare"]), 15),
        (request(1, now=SOON), 50),
        (request(20, now=SOON), 20),
        (request(1, now=SOON, queues=["main", "other"], types=["mail"]), 50),
    ],
    ids=["rare tag", "one", "twenty", "filtered"],
)
async def test_a_claim_costs_the_same(
    stores: tuple[Path, Path], wanted: ClaimRequest, times: int
) -> None:
    small, large = [await SqliteStore.open(path, synchronous="normal") for path in stores]
    for _ in range(5):
        await large.claim(request(1, now=SOON))  # the first ones read the file
    costs = await costs_in_turns(
        times, lambda: claim_all(small, wanted), lambda: claim_all(large, wanted)
    )
    await small.close()
    await large.close()
    assert median(costs[1]) < RATIO_MAX * median(costs[0])


async def test_heads_cost_the_same(stores: tuple[Path, Path]) -> None:
    small, large = [await SqliteStore.open(path, synchronous="normal") for path in stores]
    costs = await costs_in_turns(
        20,
        lambda: small.heads(request(20, now=SOON)),
        lambda: large.heads(request(20, now=SOON)),
    )
    await small.close()
    await large.close()
    assert median(costs[1]) < RATIO_MAX * median(costs[0])


@pytest.mark.parametrize("queues", [None, ["main"]])
async def test_lanes_behind_a_gate_cost_plain_claims_nothing(
    tmp_path: Path, queues: list[str] | None
) -> None:
    few, many = [
        await SqliteStore.open(tmp_path / name, synchronous="normal") for name in ("few", "many")
    ]
    for store, lanes in ((few, 1), (many, 4000)):
        await store.put_record(Record(kind=GATE, name="limited"))
        await insert(store, *(new_job(queue="main") for _ in range(100)))
        await insert(store, *(new_job(queue="limited", limit_key=f"k{n}") for n in range(lanes)))
    wanted = request(1, queues=queues)
    costs = await costs_in_turns(50, lambda: few.claim(wanted), lambda: many.claim(wanted))
    await few.close()
    await many.close()
    assert median(costs[1]) < RATIO_MAX * median(costs[0])


async def test_a_large_backlog_is_counted_without_looking_at_it(stores: tuple[Path, Path]) -> None:
    small, large = [await SqliteStore.open(path, synchronous="normal") for path in stores]
    late = NOW + timedelta(days=2)  # nothing is delayed then
    costs = await costs_in_turns(20, lambda: small.count(late), lambda: large.count(late))
    await small.close()
    await large.close()
    assert median(costs[1]) < RATIO_MAX * median(costs[0])
