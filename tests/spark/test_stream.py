"""Spark's own streams on the event log: availableNow, a trigger, and kill -9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.sources import (
    Row,
    add_jobs,
    by_seq,
    complete_jobs,
    event_rows,
    fill,
    rows_of,
    stream,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEADLINE_SECONDS = 110
START_SECONDS = 200
"""A process with a session of its own may take long to start on a busy machine."""


def wait_until(holds: Callable[[], bool], seconds: float = DEADLINE_SECONDS) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def available_now(
    spark: SparkSession, url: str, checkpoint: Path, **options: object
) -> list[list[Row]]:
    """The rows of each batch of one run."""
    batches: list[list[Row]] = []

    def keep(frame: DataFrame, _: int) -> None:
        batches.append(rows_of(frame))

    query = (
        stream(spark, url, **options)
        .load()
        .writeStream.option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .foreachBatch(keep)
        .start()
    )
    assert query.awaitTermination(DEADLINE_SECONDS)
    assert query.exception() is None
    return batches


def test_available_now_reads_all_in_bounded_batches(
    spark: SparkSession, durable_url: str, tmp_path: Path
) -> None:
    fill(durable_url, steps=40)
    first = available_now(spark, durable_url, tmp_path / "c", maxRowsPerBatch=50)
    events = event_rows(durable_url)
    assert len(first) == -(-len(events) // 50)
    assert max(len(batch) for batch in first) <= 50
    assert by_seq([row for batch in first for row in batch]) == events
    add_jobs(durable_url, 3)
    (second,) = available_now(spark, durable_url, tmp_path / "c")
    assert second == event_rows(durable_url)[-3:]


def test_a_stream_of_some_states_goes_on_behind_events_in_others(
    spark: SparkSession, durable_url: str, tmp_path: Path
) -> None:
    fill(durable_url, steps=40)
    ended = {"state": "completed, failed"}
    first = available_now(spark, durable_url, tmp_path / "c", maxRowsPerBatch=20, **ended)
    events = event_rows(durable_url)
    expected = [row for row in events if row["after"] in ("completed", "failed")]
    assert 0 < len(expected) < len(events) / 2
    assert by_seq([row for batch in first for row in batch]) == expected
    add_jobs(durable_url, 3)
    assert available_now(spark, durable_url, tmp_path / "c", **ended) == [[]]
    complete_jobs(durable_url, 2)
    (third,) = available_now(spark, durable_url, tmp_path / "c", **ended)
    assert third == event_rows(durable_url)[-2:]


def test_a_trigger_follows_the_log(spark: SparkSession, durable_url: str, tmp_path: Path) -> None:
    add_jobs(durable_url, 2)
    rows: list[Row] = []
    query = (
        stream(spark, durable_url)
        .load()
        .writeStream.option("checkpointLocation", str(tmp_path / "c"))
        .trigger(processingTime="100 milliseconds")
        .foreachBatch(lambda frame, _: rows.extend(rows_of(frame)))
        .start()
    )
    try:
        for count in (2, 5, 6):
            if count > 2:
                add_jobs(durable_url, count - len(rows))
            wait_until(lambda count=count: len(rows) >= count)  # type: ignore[misc]
    finally:
        query.stop()
    assert by_seq(rows) == event_rows(durable_url)


def test_a_stream_of_another_table_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    add_jobs(url, 1)
    with pytest.raises(Exception, match="the table jobs cannot be read as a stream"):
        (
            spark.readStream.format("headrace")
            .option("url", url)
            .option("table", "jobs")
            .load()
            .writeStream.format("noop")
            .option("checkpointLocation", str(tmp_path / "c"))
            .trigger(availableNow=True)
            .start()
            .awaitTermination(DEADLINE_SECONDS)
        )


@pytest.mark.long
def test_passwords_stay_out_of_the_checkpoint_and_of_progress(
    spark: SparkSession, tmp_path: Path
) -> None:
    """SQLite urls hold none, but what goes for the url goes for the password in it."""
    url = f"sqlite:///{tmp_path}/hush-hush.db"
    add_jobs(url, 1)
    query = (
        stream(spark, url)
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "c"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(DEADLINE_SECONDS)
    kept = [path.read_bytes() for path in (tmp_path / "c").rglob("*") if path.is_file()]
    assert any(b'"cursor": "1"' in text for text in kept)
    assert not any(b"hush-hush" in text for text in kept)
    assert "hush-hush" not in str(query.recentProgress)


# --- kill -9 -------------------------------------------------------------------------------------

VICTIM = """
import sys
from headrace.spark import session

url, folder = sys.argv[1:]
spark = session(master="local[2,3]", config={"spark.driver.memory": "1g", "spark.local.dir": folder})

def keep(frame, batch):
    frame.select("seq").write.mode("overwrite").parquet(f"{folder}/out/batch={batch}")

query = (
    spark.readStream.format("headrace").option("url", url).option("table", "events")
    .option("maxRowsPerBatch", 20).option("rowsPerPartition", 7).load()
    .writeStream.option("checkpointLocation", f"{folder}/c").trigger(processingTime="0 seconds")
    .foreachBatch(keep).start()
)
query.awaitTermination()
"""


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("durable_url", ["postgresql"], indirect=True)
def test_kill_9_in_mid_stream_loses_and_repeats_nothing(
    spark: SparkSession, tmp_path: Path, durable_url: str
) -> None:
    """A batch that was under way is read again, under its number and with the same rows."""
    kill_and_resume(spark, tmp_path, durable_url, kills=1)


def kill_and_resume(spark: SparkSession, folder: Path, url: str, *, kills: int) -> None:
    add_jobs(url, 200)
    done = threading.Event()

    def write() -> None:
        while not done.wait(0.2):
            add_jobs(url, 25)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for kill in range(kills):
            _run_and_kill(folder, url, batches=3 * (kill + 1))
    finally:
        done.set()
        writer.join()

    def keep(frame: DataFrame, batch: int) -> None:
        frame.select("seq").write.mode("overwrite").parquet(f"{folder}/out/batch={batch}")

    query = (
        stream(spark, url, maxRowsPerBatch=100_000)
        .load()
        .writeStream.option("checkpointLocation", f"{folder}/c")
        .trigger(availableNow=True)
        .foreachBatch(keep)
        .start()
    )
    assert query.awaitTermination(DEADLINE_SECONDS)
    assert query.exception() is None
    read = sorted(row.seq for row in spark.read.parquet(f"{folder}/out").collect())
    assert read == [row["seq"] for row in event_rows(url)]


def _run_and_kill(folder: Path, url: str, *, batches: int) -> None:
    """Until so many batches are behind it; then with everything it has started."""
    commits, said = folder / "c" / "commits", folder / "said.txt"
    with said.open("wb") as words:
        victim = subprocess.Popen(
            [sys.executable, "-c", VICTIM, url, str(folder)],
            start_new_session=True,
            stdout=words,
            stderr=words,
        )
    try:
        wait_until(
            lambda: victim.poll() is not None or len(list(commits.glob("[0-9]*"))) >= batches,
            START_SECONDS,
        )
        assert victim.poll() is None, said.read_text()[-3000:]
    finally:
        os.killpg(victim.pid, signal.SIGKILL)
        victim.wait()
