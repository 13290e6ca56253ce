"""What a process remembers of backlogs: never less than there is, as far as it can know."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from headrace.manager import cache
from headrace.manager.cache import BacklogEstimate, Cache, Size
from headrace.stores.base import Backlog, JobStore, Record

T0 = datetime(2026, 1, 1, tzinfo=UTC)


class Asked:
    """A store that answers when it is told to."""

    def __init__(self) -> None:
        self.answers: list[asyncio.Future[Backlog]] = []
        self.reads = 0

    async def backlog(self, **_: Any) -> Backlog:
        self.answers.append(asyncio.get_running_loop().create_future())
        return await self.answers[-1]

    async def records(self, kind: str) -> list[Record]:
        self.reads += 1
        return [Record(kind=kind, name="q", version=self.reads)]


async def measuring(waiting: BacklogEstimate, store: Asked) -> asyncio.Task[None]:
    """A measurement that has asked and waits for its answer."""
    task = asyncio.create_task(waiting.measure(cast("JobStore", store), T0))
    await asyncio.sleep(0)
    return task


def add(waiting: BacklogEstimate, jobs: int) -> None:
    waiting.send(Size(jobs, jobs))
    waiting.arrive(Size(jobs, jobs), stored=True)


async def test_what_arrives_while_it_is_measured_counts() -> None:
    waiting, store = BacklogEstimate("q", None), Asked()
    add(waiting, 5)
    task = await measuring(waiting, store)
    add(waiting, 3)
    store.answers[0].set_result(Backlog(5, 5))
    await task
    assert waiting.load == Size(8, 8)


async def test_what_is_on_its_way_counts_until_it_came_to_nothing() -> None:
    waiting = BacklogEstimate("q", None)
    waiting.send(Size(2, 20))
    assert waiting.load == Size(2, 20)
    waiting.arrive(Size(2, 20), stored=False)
    assert waiting.load == Size()


async def test_an_older_measurement_does_not_replace_a_newer_one() -> None:
    waiting, store = BacklogEstimate("q", None), Asked()
    slow = await measuring(waiting, store)
    add(waiting, 4)
    quick = await measuring(waiting, store)
    store.answers[1].set_result(Backlog(4, 4))
    await quick
    add(waiting, 1)
    store.answers[0].set_result(Backlog(0, 0))
    await slow
    assert waiting.load == Size(5, 5)


async def test_records_are_read_once_a_second_and_when_the_clock_went_back() -> None:
    store, known = Asked(), Cache()

    async def read(seconds: float) -> int:
        found = await known.records(
            cast("JobStore", store), "gate", T0 + timedelta(seconds=seconds)
        )
        return found["q"].version

    assert [await read(seconds) for seconds in (0, 0.999, 1, 1.5, 2, 1.9)] == [1, 1, 2, 2, 3, 4]
    known.forget("gate")
    assert await read(1.9) == 5


async def test_old_backlogs_are_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "BACKLOGS_MAX", 3)
    known, store = Cache(), Asked()
    busy = known.backlog("busy", None, T0)
    busy.send(Size(1, 1))
    for number in range(50):
        known.backlog(f"q{number}", "acme", T0)
    assert len(known._backlogs) <= 3
    assert known.backlog("busy", None, T0) is busy
    task = await measuring(fresh := known.backlog("fresh", None, T0), store)
    store.answers[0].set_result(Backlog(1, 1))
    await task
    for number in range(50):
        known.backlog(f"q{number}", "acme", T0)
    assert known.backlog("fresh", None, T0) is fresh
