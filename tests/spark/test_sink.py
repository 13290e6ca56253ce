"""Rows become jobs under a real Spark: every column, repeated tasks, bad rows, and streams."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark import TaskContext
from pyspark.errors import PySparkException

from headrace.model import Priority, State
from tests.spark.dying import DyingSource
from tests.spark.writing import events_of, jobs_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def write(df: DataFrame, url: str, **options: Any) -> None:
    df.write.format("headrace").mode("append").options(url=url, **options).save()


def numbers(url: str) -> list[int]:
    return sorted(job.payload["n"] for job in jobs_of(url))


def test_every_column(spark: SparkSession, durable_url: str) -> None:
    write(spark.sql("SELECT 'first' AS type, '{\"n\": -1}' AS payload"), durable_url, write_id="v")
    df = spark.sql(
        """
        SELECT 'mail' AS type, named_struct('n', id, 's', 'a"', 'd', 1.50BD, 'x', NULL) AS payload,
            'q' AS queue, 'high' AS priority, timestamp'2030-01-02 03:04:05.000006Z' AS run_at,
            map('b', 2, 'a', 1) AS tags, concat('k', id) AS key, 'default' AS tenant,
            array('v-00000-000000000') AS after
        FROM range(0, 6, 1, 3)
        """
    )
    write(df, durable_url, write_id="w")
    jobs = [job for job in jobs_of(durable_url) if job.type == "mail"]
    assert len(jobs) == 6
    one = min(jobs, key=lambda job: job.payload["n"])
    assert one.payload == {"n": 0, "s": 'a"', "d": "1.50", "x": None}
    assert (one.queue, one.priority, one.tenant) == ("q", Priority.HIGH, "default")
    assert one.tags == ("a=1", "b=2")
    assert one.key == "k0"
    assert one.run_at == datetime(2030, 1, 2, 3, 4, 5, 6, UTC)
    assert one.state is State.BLOCKED
    write(df.repartition(2), durable_url, write_id="w")
    assert len(jobs_of(durable_url)) == 7


def test_strings_of_the_large_kind(spark: SparkSession, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    df = spark.sql("SELECT 't' AS type, '{\"n\": 1}' AS payload, array('x') AS tags")
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    try:
        write(df, url)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")
    assert [(job.payload, job.tags) for job in jobs_of(url)] == [({"n": 1}, ("x",))]


def failing_once(df: DataFrame, marks: Path) -> DataFrame:
    """The same rows, but the first attempt of each task breaks after its last row."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        task = TaskContext.get()
        assert task is not None
        (marks / f"{task.partitionId()}-{task.attemptNumber()}").touch()
        if task.attemptNumber() == 0:
            raise OSError("the first attempt breaks")

    return df.mapInArrow(rows, df.schema)


BOTH_WAYS = pytest.mark.parametrize(
    ("durable_url", "atomic"),
    [("sqlite", "false"), ("postgresql", "false"), ("postgresql", "true"), ("redis", "true")],
    indirect=["durable_url"],
)


@BOTH_WAYS
def test_tasks_that_fail_and_are_repeated_store_each_row_once(
    spark: SparkSession, durable_url: str, tmp_path: Path, atomic: str
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    df = spark.range(0, 300, 1, 2).selectExpr("'t' AS type", "named_struct('n', id) AS payload")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "50")
    try:
        write(failing_once(df, marks), durable_url, atomic=atomic, batch_size=50)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert {mark.name for mark in marks.iterdir()} == {"0-0", "0-1", "1-0", "1-1"}
    assert numbers(durable_url) == list(range(300))
    assert len(events_of(durable_url)) == 300


@pytest.mark.long
@pytest.mark.parametrize("durable_url", ["sqlite", "postgresql"], indirect=True)
def test_a_task_that_dies_after_its_commit_is_repeated_without_harm(
    spark: SparkSession, durable_url: str, tmp_path: Path
) -> None:
    spark.dataSource.register(DyingSource)
    df = spark.range(0, 40, 1, 2).selectExpr("'t' AS type", "named_struct('n', id) AS payload")
    writer = df.write.format("dying").mode("append").option("url", durable_url)
    writer.options(bad_rows="reject", rejects=str(tmp_path / "rejects")).save()
    assert [mark.read_text() for mark in sorted(tmp_path.glob("died-*"))] == ["20", "20"]
    assert numbers(durable_url) == list(range(40))


@pytest.mark.parametrize("durable_url", ["postgresql", "redis"], indirect=True)
def test_bad_rows_fail_the_write_and_in_all_or_nothing_leave_nothing(
    spark: SparkSession, durable_url: str
) -> None:
    df = spark.range(0, 40, 1, 2).selectExpr(
        "if(id % 2 = 0, 't', ' ') AS type", "named_struct('n', id) AS payload"
    )
    with pytest.raises(PySparkException) as told:
        write(df, durable_url, atomic="true")
    message = str(told.value)
    assert "20 rows cannot be jobs; nothing was stored" in message
    assert message.count("the type is empty") == 10
    assert '"payload":{"n":1}' in message
    assert jobs_of(durable_url) == []


@pytest.mark.parametrize("durable_url", ["sqlite"], indirect=True)
def test_bad_rows_go_to_the_rejects_table(
    spark: SparkSession, durable_url: str, tmp_path: Path
) -> None:
    df = spark.range(0, 40, 1, 2).selectExpr(
        "if(id % 4 = 0, '{', concat('{\"n\":', id, '}')) AS payload"
    )
    path = str(tmp_path / "rejects")
    write(df, durable_url, type="t", bad_rows="reject", rejects=path)
    assert numbers(durable_url) == [n for n in range(40) if n % 4]
    kept = DeltaTable(path).to_pyarrow_table().to_pylist()
    assert Counter(row["partition"] for row in kept) == {0: 5, 1: 5}
    assert {row["code"] for row in kept} == {"INVALID_PAYLOAD"}


def test_what_can_never_work_is_refused_before_a_task_starts(
    spark: SparkSession, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    df = spark.sql("SELECT 't' AS type, 1 AS colour")
    with pytest.raises(PySparkException, match="no column 'colour'"):
        write(df, url)
    with pytest.raises(PySparkException, match="one process"):
        write(df.drop("colour"), "memory:")
    with pytest.raises(PySparkException, match="append"):
        df.drop("colour").write.format("headrace").mode("overwrite").option("url", url).save()
    assert not (tmp_path / "jobs.db").exists()


@BOTH_WAYS
def test_a_stream_whose_last_batch_is_replayed_stores_each_row_once(
    spark: SparkSession, durable_url: str, tmp_path: Path, atomic: str
) -> None:
    lines, checkpoint = tmp_path / "lines", tmp_path / "checkpoint"
    lines.mkdir()

    def run() -> None:
        query = (
            spark.readStream.schema("n long, bad boolean")
            .json(str(lines))
            .selectExpr("if(bad, ' ', 't') AS type", "named_struct('n', n) AS payload")
            .writeStream.format("headrace")
            .options(
                url=durable_url, atomic=atomic, bad_rows="reject", rejects=str(tmp_path / "bad")
            )
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(100)

    def add(name: str, first: int) -> None:
        rows = [{"n": first + n, "bad": n == 9} for n in range(10)]
        (lines / f"{name}.json").write_text("\n".join(map(json.dumps, rows)))

    def rejected() -> list[tuple[int, int]]:
        rows = DeltaTable(str(tmp_path / "bad")).to_pyarrow_table().to_pylist()
        return sorted((row["batch"], row["row"]) for row in rows)

    add("one", 0)
    run()
    add("two", 10)
    run()
    wanted = [*range(9), *range(10, 19)]
    assert numbers(durable_url) == wanted
    assert rejected() == [(0, 9), (1, 9)]
    # As after a crash between the sink's commit and Spark's own: batch 1 is not known to be done.
    for done in (checkpoint / "commits").glob("*1*"):
        done.unlink()
    run()
    assert numbers(durable_url) == wanted
    assert rejected() == [(0, 9), (1, 9)]
    assert len(events_of(durable_url)) == 18
