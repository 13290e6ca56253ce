"""A Spark session that works where it is started: with a Java, the right Python, and little noise."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.spark.datasource import register
from headrace.spark.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MASTER = "local[*,3]"
"""All cores of this machine; a task that fails is tried three times, as on a cluster."""

DEFAULTS: Mapping[str, str] = {
    # Times are UTC in the store, in Spark and in the lake, whatever the machine's zone.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A local session talks to itself, and has no page for others.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

LOCAL_DEFAULTS: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
}

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_QUIET = f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('log4j2.properties')}"
"""Even before a level can be set, Spark says nothing but errors."""
_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


def session(
    given: SparkSession | None = None,
    *,
    master: str | None = None,
    remote: str | None = None,
    app_name: str = "headrace",
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session that knows `format("headrace")`.

    `given`: the caller's own, Spark Connect ones included. `remote`: the url of a Spark Connect server.
    Otherwise one is made for `master` (default: this machine), or the one that runs already is taken.
    `config` wins over our defaults.
    """
    if given is not None:
        register(given)
        return given
    made = _connected(remote, config) if remote else _classic(master, app_name, config or {})
    register(made)
    return made


def _classic(master: str | None, app_name: str, config: Mapping[str, str]) -> SparkSession:
    prepare_environment()
    from pyspark.sql import SparkSession

    chosen = master or os.environ.get("SPARK_MASTER") or DEFAULT_MASTER
    settings = dict(DEFAULTS)
    if chosen.startswith("local"):
        # A cluster's executors must be able to reach the driver; one's own tasks are here.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= LOCAL_DEFAULTS
        settings[_SHUFFLE_PARTITIONS] = str(max(os.cpu_count() or 2, 2))
    settings |= config
    settings[_JAVA_OPTIONS] = " ".join([_QUIET, *config.get(_JAVA_OPTIONS, "").split()])
    builder = SparkSession.builder.master(chosen).appName(app_name)
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel(config.get("spark.log.level", "ERROR"))
    return made


def _connected(remote: str, config: Mapping[str, str] | None) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote(remote)
    for name, value in (config or {}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def is_remote(spark: SparkSession) -> bool:
    """Whether it is a Spark Connect session: the driver, with its Java, is another process."""
    return not hasattr(spark, "_jsparkSession")


def prepare_environment() -> None:
    """What Spark reads from the environment before it starts anything. What the caller set stays."""
    os.environ["JAVA_HOME"] = str(java_home())
    # Otherwise tasks would run on whatever `python3` the PATH has.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
