"""Options of the commands that start Spark: on which master, with which settings."""

from __future__ import annotations

import click

from headrace.cli.values import Written


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError(f"{text!r} is not a setting of Spark: write spark.executor.memory=2g")
    return name, value


master_option = click.option(
    "--master", metavar="URL", help="Where Spark runs.  [default: SPARK_MASTER, or this machine]"
)
conf_option = click.option(
    "--conf",
    "config",
    multiple=True,
    type=Written("setting", _setting),
    metavar="NAME=VALUE",
    help="A setting of Spark; may be repeated.",
)
