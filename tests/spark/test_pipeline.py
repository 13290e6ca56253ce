"""The pipeline on real stores through real Spark: what it makes of a history equals plain Python."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest
from deltalake import DeltaTable

from headrace.cli import main
from headrace.connect import connect
from headrace.spark import pipeline
from headrace.spark.lake.gold import latency, throughput
from headrace.spark.lake.home import LakeBusy, OtherStore
from headrace.spark.lake.runner import opened
from headrace.spark.lake.store import reader_of
from tests.spark import oracle
from tests.spark.lakes import assert_exact, happen, plain_run

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
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=normal"


def test_a_moved_lake_goes_on(spark: SparkSession, url: str, tmp_path: Path) -> None:
    happen(url, 1, 60)
    plain_run(url, tmp_path / "here", spark)
    shutil.move(tmp_path / "here", tmp_path / "there {1}*[a]")
    events = happen(url, 2, 60)
    done = plain_run(url, tmp_path / "there {1}*[a]", spark, tables=[throughput.TABLE], check=True)
    assert 0 < done.events < len(events)
    assert_exact(tmp_path / "there {1}*[a]", events)


def test_a_lost_checkpoint_costs_time_and_nothing_else(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    happen(url, 1, 60)
    plain_run(url, lake, spark)
    shutil.rmtree(lake / "_headrace" / "checkpoint")
    events = happen(url, 2, 60)
    plain_run(url, lake, spark)
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
    with pytest.raises(OtherStore, match="another store"):
        pipeline.run(other, lake, spark=spark)
    # A copy of the store, or another path to it, is the same store.
    shutil.copy(tmp_path / "jobs.db", tmp_path / "copy.db")
    with opened(f"sqlite:///{tmp_path / 'copy.db'}", lake, spark):
        pass


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
    assert frame["timeline"].list.len().sum() == len(events)
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
    assert not spark.streams.active
    assert_exact(lake, events)
    with opened(url, lake, spark):
        pass  # the lock is free again
