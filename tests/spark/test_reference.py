"""The examples of the reference pages, run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from headrace.spark.lake.gold import GOLD
from tests.spark.lakes import plain_run
from tests.spark.sources import add_jobs, event_rows, fill, job_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"

_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PATH = re.compile(r'(?<=")(lake/|history)|(?<=sqlite:///)(?=jobs\.db)')


def run_examples(page: str, folder: Path, names: dict[str, Any]) -> list[str]:
    """Each block in turn; they share their names. Paths mean the folder: Spark was started in another."""
    blocks = [
        _PATH.sub(lambda found: f"{folder}/{found[0]}", block)
        for block in _PYTHON.findall((REFERENCE / page).read_text("utf-8"))
    ]
    for block in blocks:
        exec(block, names)
    return blocks


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_examples_of_the_source(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    fill(url)
    names: dict[str, Any] = {"spark": spark}
    *_, stream = run_examples("spark-source.md", tmp_path, names)
    bad = [row for row in job_rows(url) if row["state"] in ("failed", "dead")]
    assert names["ended_badly"].count() == len(bad) > 0
    assert "completed|" in capsys.readouterr().out
    assert names["kinds"].columns == ["kind", "at", "job_id"]
    assert names["kinds"].count() == len(event_rows(url))

    add_jobs(url, 3)
    exec(stream, names)
    history = spark.read.parquet(f"{tmp_path}/history").collect()
    assert sorted(row.seq for row in history) == [row["seq"] for row in event_rows(url)]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_examples_of_the_lake(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    fill(url)
    needed = [table for table in GOLD if table.name in ("gold/errors", "gold/paths")]
    plain_run(url, tmp_path / "lake", spark, tables=needed)
    names: dict[str, Any] = {}
    blocks = run_examples("lake.md", tmp_path, names)
    for library in ("to_pandas", "polars", "duckdb", "pyspark"):
        assert any(library in block for block in blocks), library

    events = event_rows(url)
    assert len(names["attempts"]) == sum(row["kind"] == "leased" for row in events)
    errors = DeltaTable(f"{tmp_path}/lake/gold/errors").to_pandas()
    assert names["errors"].collect()["occurrences"].sum() == errors["occurrences"].sum() > 0
    jobs = names["read"](f"{tmp_path}/lake/silver/jobs")
    assert dict(jobs.dtypes)["ended"] == "boolean"
    assert jobs.count() == names["jobs"].count_rows()
    assert "completed" in capsys.readouterr().out
    # A table without rows has its columns all the same.
    empty = DeltaTable.create(
        f"{tmp_path}/lake/empty", DeltaTable(f"{tmp_path}/lake/gold/paths").schema()
    )
    assert not empty.file_uris()
    assert names["read"](f"{tmp_path}/lake/empty").columns[:2] == ["job_id", "born_seq"]
