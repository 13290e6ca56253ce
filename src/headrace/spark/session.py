"""A Spark session that works where it is started: with a Java, the right Python, and little noise."""

from __future__ import annotations

import itertools
import os
import re
import shlex
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
    "spark.ui.showConsoleProgress": "false",
}

LOCAL_DEFAULTS: Mapping[str, str] = {
    # A local session talks to itself, and has no page for others. A cluster's has one: look there.
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
}

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_QUIET = f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('log4j2.properties')}"
"""Even before a level can be set, Spark says nothing but errors."""
_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
_LOG_LEVEL = "spark.log.level"
_MASTER = "spark.master"


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
    Otherwise the one that runs already is taken, or one is made for `master`; without one, for the master
    that `spark-submit`, PYSPARK_SUBMIT_ARGS, spark-defaults.conf or SPARK_MASTER names, and else for this
    machine. `config` wins over what the caller has set so, and that over our defaults.
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

    running = SparkSession.getActiveSession()
    if running is not None and not config:
        return running  # with the settings of whoever made it
    set_outside = submitted_settings()
    chosen = (
        master
        or set_outside.get(_MASTER)
        or os.environ.get("SPARK_MASTER")
        or os.environ.get("MASTER")
        or DEFAULT_MASTER
    )
    settings = dict(DEFAULTS)
    if chosen.startswith("local"):
        # A cluster's executors must be able to reach the driver; one's own tasks are here.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= LOCAL_DEFAULTS
        settings[_SHUFFLE_PARTITIONS] = str(max(os.cpu_count() or 2, 2))
    settings = {name: value for name, value in settings.items() if name not in set_outside}
    settings |= config
    options = config.get(_JAVA_OPTIONS, set_outside.get(_JAVA_OPTIONS, ""))
    settings[_JAVA_OPTIONS] = " ".join([_QUIET, *options.split()])
    builder = SparkSession.builder.master(chosen).appName(app_name)
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    if _LOG_LEVEL not in set_outside:
        made.sparkContext.setLogLevel(config.get(_LOG_LEVEL, "ERROR"))
    return made


def submitted_settings() -> Mapping[str, str]:
    """What the caller has set outside this program: spark-submit, its arguments, spark-defaults.conf."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        # Started by spark-submit: its Java runs already, and knows all that was said.
        from pyspark import SparkConf, SparkContext

        SparkContext._ensure_initialized()  # noqa: SLF001 - there is no public way to join that Java
        return dict(SparkConf().getAll())
    return _defaults_file() | _submit_arguments(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))


def _defaults_file() -> dict[str, str]:
    home = Path(os.environ.get("SPARK_HOME", "."))
    folder = Path(os.environ.get("SPARK_CONF_DIR", home / "conf"))
    try:
        lines = (folder / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = (re.split(r"[\s=:]+", line.strip(), maxsplit=1) for line in lines)
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and pair[0].startswith("spark.")}  # noqa: PLR2004


def _submit_arguments(arguments: str) -> dict[str, str]:
    words = shlex.split(arguments)
    found = {}
    for word, following in itertools.pairwise(words):
        name, _, value = following.partition("=")
        if word == "--master":
            found[_MASTER] = following
        elif word in ("--conf", "-c") and value:
            found[name] = value
        elif word == "--driver-memory":
            found["spark.driver.memory"] = following
    return found


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
