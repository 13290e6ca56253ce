"""Writes the gold tables of a believable day: `python -m tests.report.sample LAKE`. Starts Spark."""

from __future__ import annotations

import sys
from pathlib import Path

from deltalake import write_deltalake

from headrace.spark import session
from headrace.spark.lake.gold import GOLD
from headrace.spark.lake.table import Sources
from tests.report.day import Day
from tests.report.history import silver

JOBS = 20_000


def write(lake: Path, jobs: int = JOBS) -> None:
    spark = session(master="local[2]", config={"spark.sql.shuffle.partitions": "2"})
    try:
        rows, attempts, levels = map(spark.createDataFrame, silver(Day(jobs).run()))
        sources = Sources(jobs=rows, attempts=attempts, levels=levels, hours=None, all_jobs=rows)
        for table in GOLD:
            assert table.transform is not None
            computed = table.transform(sources).toArrow()
            write_deltalake(
                lake / table.name, computed, mode="overwrite", partition_by=list(table.partition_by)
            )
    finally:
        spark.stop()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
