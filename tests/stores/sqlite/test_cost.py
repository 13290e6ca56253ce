"""What a claim costs does not grow with the backlog: not with what is due, nor with what is not."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from pathlib import Path
from statistics import median

import pytest

from headrace.model import Priority
from headrace.stores.base import ClaimRequest
from headrace.stores.sqlite import SqliteStore
from tests.stores.sqlite.backlog import fill
from tests.stores.sqlite.samples import NOW, request

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


async def claim_seconds(store: SqliteStore, wanted: ClaimRequest, times: int) -> float:
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        jobs = await store.claim(wanted)
        spent.append(time.perf_counter() - start)
        assert len(jobs) == wanted.limit
    return median(spent)


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
    await claim_seconds(large, request(1, now=SOON), 5)  # the first ones read the file
    # Taken in turns, so that whatever else this machine does slows both.
    costs = [
        (await claim_seconds(small, wanted, 1), await claim_seconds(large, wanted, 1))
        for _ in range(times)
    ]
    ratio = median(cost for _, cost in costs) / median(cost for cost, _ in costs)
    await small.close()
    await large.close()
    assert ratio < RATIO_MAX


async def test_a_large_backlog_is_counted_without_looking_at_it(stores: tuple[Path, Path]) -> None:
    small, large = [await SqliteStore.open(path, synchronous="normal") for path in stores]
    late = NOW + timedelta(days=2)  # nothing is delayed then
    costs = []
    for _ in range(20):
        for store in (small, large):
            start = time.perf_counter()
            await store.count(late)
            costs.append(time.perf_counter() - start)
    await small.close()
    await large.close()
    assert median(costs[1::2]) < RATIO_MAX * median(costs[::2])
