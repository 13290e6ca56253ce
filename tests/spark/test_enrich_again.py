"""Enriching again: after a redrive, with another task, with mended rows, with tries that are gone."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headrace import JobManager, State
from headrace.errors import InvalidInput
from headrace.model import Job
from tests.spark.calls import Calls, numbers, run, states

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long


@pytest.fixture
def calls(tmp_path: Path) -> Calls:
    return Calls(f"sqlite:///{tmp_path}/jobs.db?synchronous=normal")


async def _jobs(manager: JobManager) -> list[Job]:
    return list((await manager.find(limit=1000)).jobs)


async def _redrive(manager: JobManager) -> None:
    """What has failed, and was not redriven yet."""
    jobs = (await manager.find(limit=1000)).jobs
    done = {job.previous_id for job in jobs}
    await manager.redrive(
        [job.id for job in jobs if job.state is State.FAILED and job.id not in done]
    )


@pytest.mark.parametrize(
    ("task", "options"),
    [("double", {"schema": "twice int"}), ("double_all", {"schema": "int", "batch_size": 2})],
)
def test_a_row_whose_job_was_redriven_has_the_result_of_the_new_one(
    spark: SparkSession, calls: Calls, task: str, options: dict[str, Any]
) -> None:
    calls.bad = {1}
    rows = numbers(spark, [1])
    for _ in range(2):  # the second time what was redriven fails, too
        (row,) = run(rows, getattr(calls, task), **options)
        assert row["error"] == "1 is bad"
        calls.manage(_redrive)
    calls.bad = set()
    (row,) = run(rows, getattr(calls, task), **options, retry_failed=True)
    assert row["error"] is None
    assert "2" in str(row["result"])
    assert calls.seen == Counter({1: 3})


def test_a_name_belongs_to_one_task(spark: SparkSession, calls: Calls) -> None:
    @calls.app.task(queue="api")
    async def triple(n: int, word: str) -> int:
        return 3 * n

    run(numbers(spark, range(2)), calls.double, name="ours")
    with pytest.raises(InvalidInput, match=r"ran task double.*another name"):
        run(numbers(spark, range(2)), triple, name="ours")
    assert len(calls.manage(_jobs)) == 2


@pytest.mark.parametrize("sizes", [(1, 2), (2, 1)])
def test_a_name_stays_with_rows_or_with_groups(
    spark: SparkSession, calls: Calls, sizes: tuple[int, int]
) -> None:
    named = {"url": calls.app.url, "name": "ours", "workers": None, "timeout": 0.1}
    with pytest.raises(TimeoutError):
        run(numbers(spark, range(2)), "double", batch_size=sizes[0], **named)
    before = calls.manage(_jobs)
    with pytest.raises(InvalidInput, match=r"batch_size.*another name"):
        run(numbers(spark, range(2)), "double", batch_size=sizes[1], **named)
    assert calls.manage(_jobs) == before


def test_a_failed_row_can_be_mended_and_retried(spark: SparkSession, calls: Calls) -> None:
    calls.bad = {1}
    run(spark.sql("SELECT 1 n, 'a' word"), calls.double)
    calls.bad = set()
    mended = spark.sql("SELECT 1 n, 'b' word")
    with pytest.raises(InvalidInput, match="retry_failed"):
        run(mended, calls.double)
    for _ in range(2):
        (row,) = run(mended, calls.double, retry_failed=True)
        assert row["result"] == '{"twice":2,"word":"b"}'
    assert calls.seen == Counter({1: 2})
    with pytest.raises(InvalidInput, match="another name"):
        run(spark.sql("SELECT 1 n, 'c' word"), calls.double, retry_failed=True)


@pytest.mark.parametrize(("task", "size"), [("double", 1), ("double_all", 2)])
def test_a_row_is_retried_also_when_earlier_tries_were_deleted(
    spark: SparkSession, calls: Calls, task: str, size: int
) -> None:
    calls.bad = {1}
    rows = numbers(spark, [1])
    for _ in range(2):
        run(rows, getattr(calls, task), batch_size=size, retry_failed=True)
    first = calls.manage(_jobs)[0]
    calls.manage(lambda jobs: jobs.delete([first.id]))
    calls.bad = set()
    (row,) = run(rows, getattr(calls, task), batch_size=size, retry_failed=True)
    assert row["error"] is None
    assert asyncio.run(states(calls.app.url)) == {State.FAILED: 1, State.COMPLETED: 1}


def test_a_row_that_is_too_large_is_named(spark: SparkSession, calls: Calls) -> None:
    large = spark.sql("SELECT id n, repeat('x', if(id = 1, 2000000, 1)) word FROM range(3)")
    with pytest.raises(InvalidInput, match=r'"n":1,"word":"xxx.*bytes') as caught:
        run(large, calls.double)
    assert len(caught.value.message) < 1000
    grouped = spark.sql("SELECT id n, repeat('x', 200000) word FROM range(20)").coalesce(1)
    with pytest.raises(InvalidInput, match="smaller batch_size") as caught:
        run(grouped, calls.double_all, batch_size=20)
    assert len(caught.value.message) < 1000
