"""The pipeline on real stores through real Spark: what it makes of a history equals plain Python."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql.classic.dataframe import DataFrame

from headrace.cli import main
from headrace.connect import connect
from headrace.report import read
from headrace.spark import pipeline
from headrace.spark.lake import upkeep
from headrace.spark.lake.checks import ChecksFailed
from headrace.spark.lake.continuity import LogBroken
from headrace.spark.lake.delta import LakeBusy
from headrace.spark.lake.gold import latency, throughput
from headrace.spark.lake.home import OtherStore
from headrace.spark.lake.hours import BEGINNING
from headrace.spark.lake.intake import Intake
from headrace.spark.lake.run import opened
from headrace.spark.lake.store import Store, reader_of
from tests.spark import oracle
from tests.spark.lakes import assert_exact, assert_filters_find_all, happen, plain_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.model import Event


def assert_gold_counts(lake: Path, events: list[Event]) -> None:
    jobs, attempts = oracle.jobs(events), oracle.attempts(events)
    told = DeltaTable(str(lake / "gold" / "throughput")).to_pandas()
    assert told["submitted"].sum() == len(jobs)
    assert told["started"].sum() == len(attempts)
    for state in ("completed", "failed", "dead", "cancelled", "abandoned"):
        assert told[state].sum() == sum(row["state"] == state for row in jobs), state
    hours = DeltaTable(str(lake / "gold" / "latency")).to_pandas()
    assert hours["started"].sum() == len(attempts)


def test_every_table_equals_plain_python_and_grows_with_the_log(
    spark: SparkSession, durable_url: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    events = happen(durable_url, 1, 120)
    # All of gold, with all its checks, is computed once below: here it is the stores that differ.
    some = [throughput.TABLE, latency.TABLE]
    first = pipeline.run(durable_url, lake, spark=spark, batch_events=40, tables=some)
    assert first.events == len(events)
    assert first.checks > 20
    assert_exact(lake, events)
    assert_gold_counts(lake, events)

    nothing = pipeline.run(durable_url, lake, spark=spark, tables=some)
    assert nothing.events == 0
    assert nothing.since is None
    assert nothing.tables == first.tables

    more = happen(durable_url, 2, 80)
    second = pipeline.run(durable_url, lake, spark=spark, tables=some)
    assert second.events == len(more) - len(events)
    assert second.since is not None
    assert_exact(lake, more)
    assert_gold_counts(lake, more)
    for name in (
        "bronze/events",
        "silver/jobs",
        "silver/attempts",
        "gold/throughput",
        "gold/latency",
    ):
        assert_filters_find_all(lake / name, values_max=2)
    queue, submitted = max(Counter(row["queue"] for row in oracle.jobs(more)).items())
    assert (
        pc.sum(
            read(lake, since=datetime(2000, 1, 1, tzinfo=UTC), queues=[queue])["throughput"][
                "submitted"
            ]
        ).as_py()
        == submitted
    )

    async def reached() -> str:
        async with await connect(durable_url) as manager:
            (reader,) = await manager.readers()
            assert reader.name == reader_of(pipeline.status(lake).lake_id)
            return reader.cursor

    assert asyncio.run(reached()) == more[-1].cursor
    status = pipeline.status(lake, durable_url)
    assert status.cursor == status.store_tail == more[-1].cursor
    assert status.pending == 0
    assert status.runs == 3


@pytest.fixture
def rows_at_the_driver(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str], int]]:
    """By which of PySpark's doors rows came to the driver, their columns, and how many they were."""
    came: list[tuple[str, list[str], int]] = []

    def watch(owner: type, name: str, count: Callable[[Any], int]) -> None:
        real = getattr(owner, name)

        def told(self: Any, *args: Any, **kwargs: Any) -> Any:
            found = real(self, *args, **kwargs)
            columns = self.columns if hasattr(self, "columns") else ["(of an RDD)"]
            came.append((name, columns, count(found)))
            return found

        monkeypatch.setattr(owner, name, told)

    for name in ("collect", "take", "tail", "head", "toPandas"):
        watch(DataFrame, name, lambda found: len(found) if isinstance(found, list) else 1)
    for name in ("toArrow",):
        watch(DataFrame, name, lambda found: int(found.num_rows))
    for name in ("toLocalIterator", "foreachPartition"):
        watch(DataFrame, name, lambda _found: 10**9)
    return came


@pytest.mark.long
@pytest.mark.parametrize("full", [False, True], ids=["a run", "--full"])
def test_no_row_passes_the_driver(
    spark: SparkSession,
    url: str,
    tmp_path: Path,
    rows_at_the_driver: list[tuple[str, list[str], int]],
    full: bool,
) -> None:
    """File names, statistics and counts do: at PySpark's own doors."""
    happen(url, 1, 300)
    lake = tmp_path / "lake"
    some = [throughput.TABLE, latency.TABLE]
    pipeline.run(url, lake, spark=spark, tables=some, full=full)
    for _ in range(upkeep.EVERY_RUNS):  # the last one joins files
        happen(url, 2, 5)
        with opened(url, lake, spark, tables=[]) as work:
            work.start()
            work.take_in(10_000)
            work.finish(0)
    answers = [one for one in rows_at_the_driver if one[1] == ["place", "answer"]]
    assert answers
    counts = (["place", "offending"], ["count(1)"])  # of rows that offend a check
    assert [one for one in rows_at_the_driver if one not in answers and one[1] not in counts] == []
    assert sum(count for _, _, count in rows_at_the_driver) < 1000


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=normal"


@pytest.mark.long
def test_a_run_without_news_tells_the_store_how_far_the_lake_is(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    """As after a run that died before it could: else the log would be kept until something happens."""
    lake = tmp_path / "lake"
    events = happen(url, 1, 20)
    plain_run(url, lake, spark)
    name = reader_of(pipeline.status(lake).lake_id)

    async def set_back() -> None:
        async with await connect(url) as manager:
            await manager.reader_reached(name, "")

    async def reached() -> str:
        async with await connect(url) as manager:
            (reader,) = await manager.readers()
            return reader.cursor

    asyncio.run(set_back())
    plain_run(url, lake, spark)
    assert asyncio.run(reached()) == events[-1].cursor


@pytest.mark.long
def test_a_moved_lake_goes_on(spark: SparkSession, url: str, tmp_path: Path) -> None:
    happen(url, 1, 60)
    plain_run(url, tmp_path / "here", spark)
    shutil.move(tmp_path / "here", tmp_path / "there {1}*[a]")
    events = happen(url, 2, 60)
    done = plain_run(url, tmp_path / "there {1}*[a]", spark, tables=[throughput.TABLE], check=True)
    assert 0 < done.events < len(events)
    assert_exact(tmp_path / "there {1}*[a]", events)


@pytest.mark.long
def test_an_empty_log_makes_empty_tables(spark: SparkSession, url: str, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    happen(url, 1, 0)
    for full in (False, True, False):
        done = pipeline.run(url, lake, spark=spark, full=full, tables=[throughput.TABLE])
        assert done.events == 0
    assert {one.table: one.rows for one in done.tables}["gold/throughput"] == 0
    events = happen(url, 2, 20)
    pipeline.run(url, lake, spark=spark, tables=[throughput.TABLE])
    assert_exact(lake, events)


def test_only_one_pipeline_of_the_right_store(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    happen(url, 1, 10)
    with opened(url, lake, spark), pytest.raises(LakeBusy, match="nothing was changed"):
        pipeline.run(url, lake, spark=spark)
    other = f"sqlite:///{tmp_path / 'other.db'}"
    happen(other, 1, 10)
    for wrong in (
        lambda: pipeline.run(other, lake, spark=spark),
        lambda: pipeline.status(lake, other),
    ):
        with pytest.raises(OtherStore, match="another store"):
            wrong()
    with Store(other) as store:
        assert store.known_id() is None, "nothing was changed, there either"
    # A copy of the store, or another path to it, is the same store.
    shutil.copy(tmp_path / "jobs.db", tmp_path / "copy.db")
    with opened(f"sqlite:///{tmp_path / 'copy.db'}", lake, spark):
        pass


@pytest.mark.long
def test_a_failing_check_fails_loudly_and_a_rebuild_heals(
    spark: SparkSession, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = tmp_path / "lake"
    events = happen(url, 1, 120)
    plain_run(url, lake, spark)
    # Somebody meddles with the tables: an event and an attempt are gone, a count is wrong.
    DeltaTable(str(lake / "bronze" / "events")).delete("seq = 5")
    lost = oracle.attempts(events)[0]["leased_seq"]
    DeltaTable(str(lake / "silver" / "attempts")).delete(f"leased_seq = {lost}")
    changed = oracle.jobs(events)[-1]["last_seq"]
    DeltaTable(str(lake / "silver" / "jobs")).update(
        updates={"failures": "failures + 1"}, predicate=f"last_seq = {changed}"
    )
    words = ["pipeline", "run", "--url", url, "--lake", str(lake), "--full-check", "--json"]
    assert main(words) == 1
    told = capsys.readouterr().err
    assert "it holds every event of the log (1 rows, such as seq 5)" in told
    assert "no attempt without a lease event" in told
    assert f"seq={lost}" in told
    assert "folding its events gives the store's job" in told
    assert "--full" in told
    assert json.loads(told.splitlines()[-1])["code"] == "CHECKS_FAILED"

    rebuilt = pipeline.run(url, lake, spark=spark, full=True)
    assert rebuilt.events == 1
    assert_exact(lake, events)
    assert_gold_counts(lake, events)


@pytest.mark.long
def test_others_read_the_lake_without_us(spark: SparkSession, url: str, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    events = happen(url, 1, 120)
    plain_run(url, lake, spark)
    wanted = {row["last_seq"]: row["state"] for row in oracle.jobs(events)}
    table = DeltaTable(str(lake / "silver" / "jobs"))

    pandas = table.to_pandas()
    assert dict(zip(pandas["last_seq"], pandas["state"], strict=True)) == wanted
    frame = pl.read_delta(str(lake / "silver" / "jobs"))
    assert dict(frame.select("last_seq", "state").iter_rows()) == wanted
    assert frame["events"].sum() == len(events)
    files = table.file_uris()
    with duckdb.connect() as duck:
        query = "SELECT last_seq, state FROM read_parquet(?, hive_partitioning = true) WHERE ended NOTNULL"
        assert dict(duck.execute(query, [files]).fetchall()) == wanted
    held = duckdb.arrow(table.to_pyarrow_table(columns=["last_seq", "state"])).fetchall()
    assert dict(held) == wanted
    seen = spark.read.option("basePath", str(lake / "silver" / "jobs")).parquet(*files)
    assert {row.last_seq: row.state for row in seen.select("last_seq", "state").collect()} == wanted


def test_following_takes_in_what_comes_and_ends_when_it_is_told_to(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    happen(url, 1, 60)
    following = pipeline.follow(
        url, lake, spark=spark, every_seconds=0.2, tables=[throughput.TABLE]
    )
    assert next(following).events > 0
    events = happen(url, 2, 60)
    while pipeline.status(lake).cursor != events[-1].cursor or pipeline.status(lake).pending:
        next(following)
    following.close()
    assert_exact(lake, events)
    with opened(url, lake, spark):
        pass  # the lock is free again


# --- what a run leaves behind when it dies -------------------------------------------------------


@pytest.mark.long
def test_what_a_run_did_not_check_the_next_one_does(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    events = happen(url, 1, 60)
    with opened(url, lake, spark, tables=[throughput.TABLE]) as died:
        died.start()
        died.take_in(10_000)
        died.refresh(everything=False)
    # Whatever went wrong with what it wrote:
    DeltaTable(str(lake / "bronze" / "events")).delete("seq = 5")
    for _ in range(2):  # a check that has failed is made again, too, until it passes
        with pytest.raises(ChecksFailed, match="as many rows as were committed"):
            pipeline.run(url, lake, spark=spark, tables=[throughput.TABLE])
    assert pipeline.run(url, lake, spark=spark, full=True, tables=[throughput.TABLE]).events == 1
    assert pipeline.run(url, lake, spark=spark, tables=[throughput.TABLE]).checks == 0
    assert_exact(lake, events)


@pytest.mark.long
def test_a_rebuild_that_was_cut_short_leaves_gold_and_the_checks_to_the_next_run(
    spark: SparkSession, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    events = happen(url, 1, 60)
    pipeline.run(url, lake, spark=spark, tables=[throughput.TABLE, latency.TABLE])
    DeltaTable(str(lake / "gold" / "throughput")).update(updates={"started": "started + 1"})

    rebuild = Intake.rebuild

    def swap_and_die(self: Intake) -> None:
        rebuild(self)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Intake, "rebuild", swap_and_die)
        with pytest.raises(KeyboardInterrupt):
            pipeline.run(url, lake, spark=spark, full=True, tables=[throughput.TABLE])
    healed = pipeline.run(url, lake, spark=spark, tables=[throughput.TABLE, latency.TABLE])
    assert healed.checks > 0
    assert_gold_counts(lake, events)


@pytest.mark.long
def test_a_gold_table_that_was_left_out_is_made_up_for(
    spark: SparkSession, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    happen(url, 1, 60)
    both = [throughput.TABLE, latency.TABLE]
    pipeline.run(url, lake, spark=spark, tables=both)
    events = happen(url, 2, 60)
    pipeline.run(url, lake, spark=spark, tables=[latency.TABLE])
    done = pipeline.run(url, lake, spark=spark, tables=both)
    assert done.events == 0
    assert_gold_counts(lake, events)
    # So is one whose batches nobody remembers: silver's log does not go back so far any more.
    events = happen(url, 3, 60)
    with opened(url, lake, spark, tables=both) as died:
        died.start()
        died.take_in(10_000)
    monkeypatch.setattr("headrace.spark.lake.refresh.changed_since", lambda *_: None)
    assert pipeline.run(url, lake, spark=spark, tables=both).since == BEGINNING
    assert_gold_counts(lake, events)


@pytest.mark.long
def test_a_store_that_went_back_is_refused_and_nothing_is_lost_in_silence(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    happen(url, 1, 30)
    store, backup = tmp_path / "jobs.db", tmp_path / "backup.db"
    plain_run(url, lake, spark)
    shutil.copy(store, backup)
    events = happen(url, 2, 30)
    plain_run(url, lake, spark)
    for path in tmp_path.glob("jobs.db*"):
        path.unlink()
    shutil.copy(backup, store)
    for full in (False, True):
        with pytest.raises(LogBroken, match=r"older state .* nothing was changed.* a new lake"):
            pipeline.run(url, lake, spark=spark, full=full, tables=[])
    happen(url, 3, 60)  # other events, under the same numbers
    for full in (False, True):
        with pytest.raises(LogBroken, match="holds another one there"):
            pipeline.run(url, lake, spark=spark, full=full, tables=[])
    assert_exact(lake, events)


@pytest.mark.long
def test_a_log_that_was_trimmed_too_far_is_refused_until_the_gap_is_accepted(
    spark: SparkSession, durable_url: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    first = happen(durable_url, 1, 20)
    plain_run(durable_url, lake, spark)

    async def trim(upto: str) -> None:
        async with await connect(durable_url) as manager:
            await manager.store.trim([upto], datetime(2100, 1, 1, tzinfo=UTC), 10_000)

    asyncio.run(trim(first[-1].cursor))
    second = happen(durable_url, 2, 20)  # all that the log holds now
    plain_run(durable_url, lake, spark)
    assert_exact(lake, [*first, *second])
    happen(durable_url, 3, 20)
    asyncio.run(trim(happen(durable_url, 4, 20)[-1].cursor))
    with pytest.raises(LogBroken, match=r"trimmed past .* nothing was changed.*--full"):
        pipeline.run(durable_url, lake, spark=spark, tables=[])
    left = happen(durable_url, 5, 20)
    pipeline.run(durable_url, lake, spark=spark, tables=[], full=True)
    assert_exact(lake, [*first, *second, *left])
