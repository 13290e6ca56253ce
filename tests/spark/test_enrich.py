"""Enriching on every durable store: each row once, resumed, retried, in groups, typed, refused."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headrace import State, connect
from headrace.errors import InvalidInput
from headrace.limits import QueueLimits, Rate
from headrace.model import EventKind
from headrace.spark.enrichment import Progress
from headrace.spark.enrichment.failures import EnrichmentFailed
from headrace.spark.fleet import Fleet
from headrace.stores.base import EventQuery
from tests.spark.calls import QUICK, Calls, numbers, run, states

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def calls(durable_url: str) -> Calls:
    return Calls(durable_url)


@pytest.fixture
def sqlite_calls(tmp_path: Path) -> Calls:
    return Calls(f"sqlite:///{tmp_path}/jobs.db?synchronous=normal")


def test_every_row_comes_back_once_and_is_not_run_again(spark: SparkSession, calls: Calls) -> None:
    calls.bad = {3}
    values = [*range(30), 5, 5]
    told: list[Progress] = []
    rows = run(
        numbers(spark, values), calls.double, schema="twice int, word string", progress=told.append
    )
    assert [row["n"] for row in rows] == sorted(values)
    for row in rows:
        if row["n"] == 3:
            assert (row["result"], row["error"], row["attempts"]) == (None, "3 is bad", 1)
        else:
            assert row["result"].asDict() == {"twice": 2 * row["n"], "word": f"w{row['n']}"}
            assert row["error"] is None
            assert row["attempts"] == 1
            assert row["seconds"] >= 0
    assert calls.seen == Counter(dict.fromkeys(range(30), 1))
    assert told[-1] == Progress(total=30, completed=29, failed=1, running=0, waiting=0)

    # The same again, with more rows, and with what had failed.
    calls.bad = set()
    again = run(numbers(spark, range(35)), calls.double, schema="twice int", retry_failed=True)
    assert [row["result"]["twice"] for row in again] == [2 * n for n in range(35)]
    assert calls.seen == Counter({**dict.fromkeys(range(35), 1), 3: 2})
    assert asyncio.run(states(calls.app.url)) == {State.COMPLETED: 35, State.FAILED: 1}


def test_groups_of_rows_are_one_job_each(spark: SparkSession, sqlite_calls: Calls) -> None:
    calls = sqlite_calls
    rows = run(numbers(spark, range(25)), calls.double_all, batch_size=4, schema="int")
    assert [(row["n"], row["result"]) for row in rows] == [(n, 2 * n) for n in range(25)]
    # More rows make groups of their own: what is done is not done again.
    rows = run(numbers(spark, range(40)), calls.double_all, batch_size=10, schema="int")
    assert [(row["n"], row["result"]) for row in rows] == [(n, 2 * n) for n in range(40)]
    assert calls.seen == Counter(dict.fromkeys(range(40), 1))
    jobs = sum(asyncio.run(states(calls.app.url)).values())
    assert 7 + 2 <= jobs < 40


@pytest.mark.long
def test_a_rate_holds_for_all_of_it(spark: SparkSession, sqlite_calls: Calls) -> None:
    run(
        numbers(spark, range(12)),
        sqlite_calls.double,
        limits=QueueLimits(rate=Rate(10, per_seconds=1, burst=2)),
    )

    async def starts() -> list[datetime]:
        async with await connect(sqlite_calls.app.url) as manager:
            events = await manager.store.events(EventQuery(limit=1000))
            return [one.at for one in events if one.kind is EventKind.LEASED]

    times = asyncio.run(starts())
    assert len(times) == 12
    assert (times[-1] - times[0]).total_seconds() >= 0.9


@pytest.mark.long
def test_a_fleet_can_run_the_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "enrich_fleet_app.py").write_text(
        "from headrace import Headrace\n"
        f"app = Headrace('sqlite:///{tmp_path}/jobs.db?synchronous=normal')\n"
        "@app.task\n"
        "async def double(n: int) -> int:\n"
        "    return 2 * n\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    import enrich_fleet_app  # type: ignore[import-not-found]

    rows = run(
        numbers(spark, range(20)),
        enrich_fleet_app.app.tasks["double"],
        workers=None,
        fleet=Fleet(place="enrich_fleet_app:app", tasks=2, settings=QUICK),
        schema="long",
    )
    assert [row["result"] for row in rows] == [2 * n for n in range(20)]


@pytest.mark.long
def test_ctrl_c_lets_the_fleet_finish_what_it_holds(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's own answer to it is to kill every task, and so the workers with the jobs they hold."""
    url = f"sqlite:///{tmp_path}/jobs.db?synchronous=normal"
    (tmp_path / "enrich_stopped_app.py").write_text(
        "import asyncio\n"
        "from headrace import Headrace\n"
        f"app = Headrace({url!r})\n"
        "@app.task\n"
        "async def double(n: int) -> int:\n"
        "    await asyncio.sleep(0.5)\n"
        "    return 2 * n\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    import enrich_stopped_app  # type: ignore[import-not-found]

    def interrupt(now: Progress) -> None:
        if now.completed and not told:
            told.append(now)
            os.kill(os.getpid(), signal.SIGINT)

    told: list[Progress] = []
    with pytest.raises(KeyboardInterrupt):
        run(
            numbers(spark, range(100)),
            enrich_stopped_app.app.tasks["double"],
            workers=None,
            fleet=Fleet(place="enrich_stopped_app:app", tasks=1, settings=QUICK),
            progress=interrupt,
        )
    left = asyncio.run(states(url))
    assert set(left) <= {State.COMPLETED, State.PENDING, State.RETRYING}
    assert 0 < left[State.COMPLETED] < 100


@pytest.mark.long
def test_a_task_can_be_named_and_run_elsewhere(spark: SparkSession, sqlite_calls: Calls) -> None:
    """As for a service whose code is not here: only the name and the store are known."""
    from headrace.spark.enrichment.workers import LocalWorker

    worker = LocalWorker(sqlite_calls.app, QUICK)
    try:
        rows = run(
            numbers(spark, range(5)),
            "double",
            workers=None,
            url=sqlite_calls.app.url,
            queue="api",
            name="by-name",
        )
    finally:
        worker.stop()
    assert [row["result"] for row in rows] == [
        f'{{"twice":{2 * n},"word":"w{n}"}}' for n in range(5)
    ]


def test_failures_can_raise(spark: SparkSession, sqlite_calls: Calls) -> None:
    sqlite_calls.bad = {1, 2}
    with pytest.raises(
        EnrichmentFailed, match="2 rows of enrichment double have no result"
    ) as caught:
        run(numbers(spark, range(4)), sqlite_calls.double, on_error="raise")
    assert caught.value.rows == 2
    assert sorted(error for _, error in caught.value.examples) == ["1 is bad", "2 is bad"]


@pytest.mark.long
def test_waiting_has_an_end_and_the_jobs_go_on(spark: SparkSession, sqlite_calls: Calls) -> None:
    with pytest.raises(TimeoutError, match="3 of 3 jobs"):
        run(numbers(spark, range(3)), sqlite_calls.double, workers=None, timeout=0.3)
    assert asyncio.run(states(sqlite_calls.app.url)) == {State.PENDING: 3}
    assert len(run(numbers(spark, range(3)), sqlite_calls.double)) == 3


@pytest.mark.long
def test_keys_of_every_exact_type_find_their_rows_again(
    spark: SparkSession, sqlite_calls: Calls
) -> None:
    values = [
        (
            n,
            f'k{n}ß"\\',
            n % 2 == 0,
            date(2026, 1, n + 1),
            datetime(2026, 1, 1, 0, 0, 0, n, tzinfo=UTC),
            Decimal(n),
        )
        for n in range(4)
    ]
    df = spark.createDataFrame(
        values, "n long, s string, b boolean, d date, at timestamp, amount decimal(20,3)"
    )
    keys = ["n", "s", "b", "d", "at", "amount"]
    for _ in range(2):
        rows = run(df, sqlite_calls.double_all, key=keys, batch_size=3, schema="int")
        assert [row["result"] for row in rows] == [0, 2, 4, 6]
    assert sqlite_calls.seen == Counter(dict.fromkeys(range(4), 1))


@pytest.mark.long
def test_a_group_whose_results_do_not_fit_says_so(spark: SparkSession, sqlite_calls: Calls) -> None:
    wrong = [1]

    @sqlite_calls.app.task
    async def short(rows: list[dict[str, Any]]) -> list[int]:
        return wrong or [0 for _ in rows]

    df = numbers(spark, range(3)).coalesce(1)
    rows = run(df, short, batch_size=3)
    assert {row["error"] for row in rows} == {"the task returned 1 results for 3 rows"}
    wrong.clear()
    rows = run(df, short, batch_size=3, retry_failed=True)
    assert [(row["result"], row["error"]) for row in rows] == [("0", None)] * 3


@pytest.mark.parametrize(
    ("sql", "options", "match"),
    [
        ("SELECT CAST(NULL AS int) n, 'a' word", {}, "1 rows have no key"),
        (
            "SELECT 1 n, 'a' word UNION ALL SELECT 1, 'b'",
            {},
            "1 keys .n. stand for rows that differ",
        ),
        ("SELECT 1 n, 'a' word, 'x' result", {}, "column 'result' already"),
        ("SELECT 1 n, 1.5D x", {"key": "x"}, "key 'x' is of type double"),
        ("SELECT 1 n, X'00' word", {}, "row.word is binary"),
        ("SELECT 1 n, double('NaN') word", {}, "a row cannot be a job"),
        ("SELECT 1 n", {"key": "m"}, "the key 'm' is not one column"),
        ("SELECT 1 n", {"columns": ["m"]}, "the column 'm' is not one column"),
        ("SELECT 1 n, 2 m", {"columns": ["n", "m"]}, "has no argument 'm'"),
        ("SELECT 1 m, 'a' word", {"key": "m"}, "needs the argument 'n'"),
        ("SELECT 1 n", {"name": "a b"}, "name of an enrichment"),
        ("SELECT 1 n", {"on_error": "ignore"}, "on_error"),
        ("SELECT 1 n", {"batch_size": 0}, "batch_size"),
        ("SELECT 1 n", {"url": "memory:", "workers": None}, "memory:"),
        ("SELECT 1 n", {"fleet": "a:b"}, "not both"),
        ("SELECT 1 n", {"fleet": "nowhere:app", "workers": None}, "no module 'nowhere'"),
        ("SELECT 1 n", {"workers": 0}, "concurrency is 0"),
    ],
)
def test_what_can_never_work_is_refused_before_anything_is_stored(
    spark: SparkSession, sqlite_calls: Calls, sql: str, options: dict[str, Any], match: str
) -> None:
    with pytest.raises(InvalidInput, match=match):
        run(spark.sql(sql), sqlite_calls.double, **options)
    assert not Path(sqlite_calls.app.url.removeprefix("sqlite:///").partition("?")[0]).exists()


def test_a_worker_that_cannot_run_here_is_refused_before_limits_are_set(
    spark: SparkSession, sqlite_calls: Calls
) -> None:
    with pytest.raises(InvalidInput, match="give the task itself; nothing was stored or changed"):
        run(
            numbers(spark, [1]),
            "double",
            url=sqlite_calls.app.url,
            limits=QueueLimits(concurrency=7),
        )
    assert sqlite_calls.manage(lambda jobs: jobs.limits()) == {}


@pytest.mark.long
def test_a_row_that_has_changed_does_not_get_the_old_result(
    spark: SparkSession, sqlite_calls: Calls
) -> None:
    run(spark.sql("SELECT 1 n, 'a' word"), sqlite_calls.double)
    with pytest.raises(
        InvalidInput, match="nothing was stored or changed: give this one another name"
    ):
        run(
            spark.sql("SELECT 1 n, 'b' word"),
            sqlite_calls.double,
            limits=QueueLimits(concurrency=7),
        )
    assert sqlite_calls.manage(lambda jobs: jobs.limits()) == {}
    (row,) = run(spark.sql("SELECT 1 n, 'b' word"), sqlite_calls.double, name="second")
    assert row["result"] == '{"twice":2,"word":"b"}'
