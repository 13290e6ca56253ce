"""Gold through the real pipeline equals plain Python, at the first run and after more has happened."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headrace.model import Event
from headrace.spark.lake.gold import GOLD, objectives, of_lake
from headrace.spark.lake.table import Table
from tests.spark import gold_oracle, oracle
from tests.spark.lakes import assert_exact, assert_gold_exact, differences, happen, plain_run
from tests.spark.wild import BRISK_SECONDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROMISES = """[
    {"queue": "slow", "start_seconds": 20, "start_ratio": 0.9, "finish_seconds": 60},
    {"type": "mail", "success_ratio": 0.5}
]"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=normal"


@pytest.mark.timeout(
    300
)  # all of gold twice: half a minute, and much more on a machine that is busy
def test_every_gold_table_equals_plain_python_and_grows_with_the_log(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    promise(lake)
    happen(url, 3, 250)
    events = happen(url, 4, 250, BRISK_SECONDS)
    tables = of_lake(lake)
    first = plain_run(url, lake, spark, tables=tables)
    assert first.events == len(events)
    assert_exact(lake, events)
    assert_gold_exact(lake, events)

    # A day later: what was left open goes on, and most hours are not computed again.
    more = happen(url, 5, 150, BRISK_SECONDS)
    second = plain_run(url, lake, spark, tables=tables)
    assert 0 < second.events == len(more) - len(events)
    assert second.since is not None
    assert second.since > events[0].at
    assert_exact(lake, more)
    assert_gold_exact(lake, more)
    assert_telling(more)


def promise(lake: Path) -> None:
    file = lake / objectives.FILE
    file.parent.mkdir(parents=True)
    file.write_text(PROMISES)


def assert_telling(events: Sequence[Event]) -> None:
    """The history has what the tables are about; otherwise they would agree on nothing."""
    tables = gold_oracle.tables(events)
    assert all(tables.values())
    assert max(row["length"] for row in tables["gold/paths"]) >= 3
    assert len({row["day"] for row in tables["gold/throughput"]}) >= 3
    assert {row["tenant"] for row in tables["gold/tenants"]} == {"default", "acme"}
    assert any(row["recovered_jobs"] for row in tables["gold/retries"])
    assert any(row["given_up_jobs"] for row in tables["gold/retries"])
    jobs = oracle.jobs(events)
    assert {"completed", "failed", "dead", "cancelled"} <= {job["state"] for job in jobs}
    assert max(Counter(job["job_id"] for job in jobs).values()) > 1
    outcomes = {attempt["outcome"] for attempt in oracle.attempts(events)}
    assert {"completed", "retrying", "snoozed", "released", "lost", "failed", "dead"} <= outcomes


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[oracle.Row]]:
    folder = tmp_path_factory.mktemp("wanted")
    return gold_oracle.tables(happen(f"sqlite:///{folder / 'jobs.db'}?synchronous=normal", 3, 250))


@pytest.mark.parametrize("table", GOLD, ids=lambda table: table.name)
def test_no_wrong_value_goes_unseen(table: Table, wanted: dict[str, list[oracle.Row]]) -> None:
    rows = wanted[table.name]
    assert list(rows[0].keys() ^ {column.name for column in table.columns}) == []
    assert differences(copy.deepcopy(rows), rows, table.key) == []
    for column in table.columns:
        told = copy.deepcopy(rows)
        place, value = next(
            (i, v) for i, row in enumerate(rows) if (v := row[column.name]) is not None
        )
        told[place][column.name] = meddled(value)
        assert differences(told, rows, table.key), column.name
    assert differences([*rows, rows[0]], rows, table.key) == ["1 rows told twice"]
    assert differences(rows[1:], rows, table.key) == [f"{rows[0]} is missing"]
    assert differences(rows, rows[1:], table.key) == [f"{rows[0]} is too much"]


def meddled(value: Any) -> Any:
    """The value, off by as little as there is."""
    match value:
        case str():
            return value + "."
        case float():
            return value * (1 + 1e-8) or 1e-8
        case int():
            return value + 1
        case list():
            return [meddled(value[0]), *value[1:]]
        case dict():
            last = list(value)[-1]
            return value | {last: meddled(value[last])}
        case date():  # a datetime is one, too
            return value + value.resolution
        case _:
            raise AssertionError(value)
