"""The parts of an enrichment by themselves, without Spark: waiting, submitting, reading back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from headrace import JobSpec, State, connect
from headrace.errors import StoreUnavailable
from headrace.limits import QueueLimits
from headrace.manager.queries import Stats
from headrace.spark.enrichment import executors, waiting
from headrace.spark.enrichment.request import Request


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    return Request(
        name="ours",
        url=f"sqlite:///{tmp_path}/jobs.db?synchronous=normal",
        tenant=None,
        policies=None,
        template=JobSpec(type="double", queue="api"),
        batch_size=1,
        rows_argument=None,
        limit_by=None,
        keys=("n",),
        columns=("n",),
        primary_key=None,
        types=("double",),
    )


class Flaky:
    """A manager whose store is away now and then; every job has ended when it is asked for the last time."""

    def __init__(self, answers: list[bool]) -> None:
        self.answers = answers

    async def stats(self, **_: Any) -> Stats:
        if not self.answers.pop(0):
            raise StoreUnavailable("the store is away")
        jobs = 0 if self.answers else 1
        states = {**dict.fromkeys(State, 0), State.COMPLETED: jobs, State.PENDING: 1 - jobs}
        return Stats(total=1, states=states, ready=0, delayed=0, failures=0, tallies=())


def wait(manager: Any, request: Request, **options: Any) -> waiting.Progress:
    settings = {"timeout": None, "poll_seconds": 0.01, "check": lambda: None, **options}
    return asyncio.run(waiting.wait(manager, request, on_progress=lambda _: None, **settings))


def test_a_store_that_restarts_does_not_end_the_wait(request_: Request) -> None:
    assert wait(Flaky([False, True, False, False, True]), request_).completed == 1


def test_a_store_that_stays_away_does_not_outlast_the_timeout(request_: Request) -> None:
    with pytest.raises(TimeoutError, match="ours"):
        wait(Flaky([False] * 1000), request_, timeout=0.2)


def test_nobody_to_run_the_jobs_is_said_again_and_again(
    request_: Request, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(waiting, "_LONELY_SECONDS", 0.02)
    asyncio.run(submit(request_, 1, b"1"))

    async def waited() -> None:
        async with await connect(request_.url) as manager:
            await waiting.wait(
                manager,
                request_,
                timeout=0.5,
                poll_seconds=0.01,
                on_progress=lambda _: None,
                check=lambda: None,
            )

    with caplog.at_level(logging.WARNING), pytest.raises(TimeoutError):
        asyncio.run(waited())
    assert len([one for one in caplog.records if "no worker asks" in one.message]) > 1


async def submit(request: Request, jobs: int, payload: bytes) -> None:
    async with await executors.open_manager(request) as manager:
        await manager.submit_many(
            [
                JobSpec(
                    type="double",
                    queue="api",
                    id=f"ours-{n:032x}",
                    payload=msgspec.Raw(payload),
                    tags=[request.tag],
                )
                for n in range(jobs)
            ]
        )


def test_large_contents_are_read_in_small_pages(request_: Request) -> None:
    asyncio.run(submit(request_, 60, b'"' + b"x" * 900_000 + b'"'))
    asked = pa.RecordBatch.from_pydict({"after": [0], "upto": [60]})
    pages = list(executors.outcomes(request_)(iter([asked])))
    assert sum(len(page) for page in pages) == 60
    assert max(page.nbytes for page in pages) < 20_000_000


def test_small_contents_are_read_in_large_pages(request_: Request) -> None:
    asyncio.run(submit(request_, 4000, b"1"))
    asked = pa.RecordBatch.from_pydict({"after": [0], "upto": [4000]})
    pages = list(executors.outcomes(request_)(iter([asked])))
    assert sum(len(page) for page in pages) == 4000
    assert len(pages) < 8


def rows(count: int) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict(
        {
            "id": [f"{n:032x}" for n in range(count)],
            "text": [f'{{"n":{n}}}' for n in range(count)],
            "after": pa.array([None] * count, pa.int64()),
        }
    )


def test_a_queue_that_stays_full_is_told_and_not_buried(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "FULL_SECONDS", 0.2)

    async def limit() -> None:
        async with await connect(request_.url) as manager:
            await manager.set_limits("api", QueueLimits(waiting_jobs_max=2))

    asyncio.run(limit())
    (told,) = executors.submitted(request_)(rows(5))
    assert told["code"].to_pylist() == ["QUEUE_FULL"]
    assert "api" in told["problem"][0].as_py()

    async def stored() -> int:
        async with await connect(request_.url) as manager:
            return (await manager.stats()).total

    # There is never room for all at once: as many as there is room for.
    assert asyncio.run(stored()) == 2
