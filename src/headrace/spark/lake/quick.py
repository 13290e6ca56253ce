"""A Spark session for little data: it spends its time on rows, not on getting ready for millions of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LITTLE_ROWS = 300_000
"""Up to so many rows of silver, compiling a query takes longer than running it uncompiled."""

_LITTLE = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
_ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    # The files of a snapshot are known: looking each up takes less time than a job that does.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
}


def session_for(spark: SparkSession, rows: int) -> SparkSession:
    """A session beside the given one, with views and settings of its own, for tables with so many rows."""
    made = spark.newSession()
    settings = _ALWAYS | (_LITTLE if rows <= LITTLE_ROWS else {})
    for name, value in settings.items():
        made.conf.set(name, value)
    return made
