"""An application whose tasks remember what they were called with, and DataFrames to enrich by them."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from headrace import Headrace, JobManager, PermanentError, Policy, State, WorkerSettings, connect
from headrace.spark import enrich

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

QUICK = WorkerSettings(concurrency=8, poll_seconds=0.2)
POLL = 0.1

T = TypeVar("T")


class Calls:
    """What is in `bad` fails for good."""

    def __init__(self, url: str) -> None:
        self.app = Headrace(url, policies=Policy(max_attempts=2))
        self.seen: Counter[int] = Counter()
        self.bad: set[int] = set()
        self._lock = threading.Lock()

        @self.app.task(queue="api")
        async def double(n: int, word: str | None = "none") -> dict[str, Any]:
            self._note(n)
            if n in self.bad:
                raise PermanentError(f"{n} is bad", code="BAD")
            return {"twice": 2 * n, "word": word}

        @self.app.task(queue="groups")
        async def double_all(rows: list[dict[str, Any]]) -> list[int]:
            for row in rows:
                self._note(row["n"])
            if bad := [row["n"] for row in rows if row["n"] in self.bad]:
                raise PermanentError(f"{bad[0]} is bad", code="BAD")
            return [2 * row["n"] for row in rows]

        self.double = double
        self.double_all = double_all

    def manage(self, work: Callable[[JobManager], Awaitable[T]]) -> T:
        async def within() -> T:
            async with await connect(self.app.url) as jobs:
                return await work(jobs)

        return asyncio.run(within())

    def _note(self, n: int) -> None:
        with self._lock:
            self.seen[n] += 1


def numbers(spark: SparkSession, values: Sequence[int]) -> DataFrame:
    return spark.createDataFrame([(n, f"w{n}") for n in values], "n int, word string")


def run(df: DataFrame, task: Any, **options: Any) -> list[Row]:
    settings = {"key": "n", "workers": QUICK, "poll_seconds": POLL, "timeout": 60.0, **options}
    return enrich(df, task, **settings).orderBy("n").collect()


async def states(url: str) -> dict[State, int]:
    async with await connect(url) as manager:
        return {state: jobs for state, jobs in (await manager.stats()).states.items() if jobs}
