"""Tables of a store in Spark: exactly what the store's own verbs say, in every column."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.spark.schemas import TABLES, spark_schema
from tests.spark import oracle
from tests.spark.sources import (
    add_jobs,
    event_rows,
    events_of,
    fill,
    job_rows,
    load,
    rows_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_every_table_is_what_the_verbs_say(spark: SparkSession, durable_url: str) -> None:
    fill(durable_url)
    jobs = load(spark, durable_url, "jobs", partitions=2)
    assert jobs.schema == spark_schema(TABLES["jobs"])
    assert rows_of(jobs) == job_rows(durable_url)

    events = load(spark, durable_url, "events", partitions=2)
    assert events.schema == spark_schema(TABLES["events"])
    assert events.rdd.getNumPartitions() == 2
    assert rows_of(events) == event_rows(durable_url)

    attempts = load(spark, durable_url, "attempts", partitions=2)
    assert attempts.schema == spark_schema(TABLES["attempts"])
    assert rows_of(attempts, "leased_seq") == oracle.attempts(events_of(durable_url))


def test_a_state_is_an_option_of_every_table(spark: SparkSession, durable_url: str) -> None:
    fill(durable_url)
    for table, state, by in (
        ("jobs", "state", "seq"),
        ("events", "after", "seq"),
        ("attempts", "state_after", "leased_seq"),
    ):
        chosen = load(spark, durable_url, table, state="completed, lost, dead", partitions=2)
        rows = rows_of(load(spark, durable_url, table), by)
        expected = [row for row in rows if row[state] in ("completed", "lost", "dead")]
        assert 0 < len(expected) < len(rows)
        assert rows_of(chosen, by) == expected
        with pytest.raises(Exception, match=r"'ready' is not a state; nothing was read.*blocked"):
            load(spark, durable_url, table, state="ready")


def test_filters_of_one_frame_do_not_leak_into_another(spark: SparkSession, tmp_path: Path) -> None:
    """With pushFilters, Spark 4.3 gave the second of the two twice."""
    url = f"sqlite:///{tmp_path}/jobs.db"
    add_jobs(url, 2, tenant="acme")
    add_jobs(url, 3, tenant="odd")
    frame = load(spark, url, "jobs")
    both = frame.where("tenant = 'acme'").union(frame.where("tenant = 'odd'"))
    assert rows_of(both) == job_rows(url)


def test_a_schema_of_ones_own_reads_only_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    add_jobs(url, 3)
    reader = spark.read.format("headrace").option("url", url).option("table", "events")
    frame = reader.schema("kind string, seq bigint, at timestamp").load()
    assert rows_of(frame) == [
        {name: row[name] for name in ("kind", "seq", "at")} for row in event_rows(url)
    ]
    with pytest.raises(Exception, match="the table events has no column 'colour'"):
        reader.schema("seq bigint, colour string").load().collect()
    with pytest.raises(Exception, match="the column seq of events is bigint, not int"):
        reader.schema("seq int").load().collect()


def test_the_format_is_found_without_registering(spark: SparkSession, tmp_path: Path) -> None:
    """A session of its own does not know what was registered in the others."""
    url = f"sqlite:///{tmp_path}/jobs.db"
    add_jobs(url, 3)
    assert load(spark.newSession(), url, "jobs").count() == 3


def test_an_empty_store_has_empty_tables(spark: SparkSession, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    add_jobs(url, 0)
    for table in TABLES:
        assert load(spark, url, table).count() == 0


def test_what_is_wrong_is_told_in_our_words(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="no such file; nothing was created"):
        load(spark, f"sqlite:///{tmp_path}/nothing.db", "jobs").collect()
    with pytest.raises(Exception, match="they cannot see it; nothing was read: use sqlite:///path"):
        load(spark, "memory:", "jobs")


def test_passwords_stay_out_of_plans_and_errors(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    url = "postgresql://joe:hush-hush@127.0.0.1:1/nowhere?schema=s"
    frame = load(spark, url, "jobs")
    with pytest.raises(Exception, match=r"127\.0\.0\.1:1/nowhere") as caught:
        frame.collect()
    frame.explain(extended=True)
    written = capfd.readouterr()
    assert "headrace" in written.out
    assert "hush-hush" not in f"{caught.value}{written.out}{written.err}"
