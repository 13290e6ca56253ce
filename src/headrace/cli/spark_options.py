"""Options of the commands that work on a lake: where it lies, on which master, with what settings."""

from __future__ import annotations

import click

from headrace.cli.values import Written


def _setting(text: str) -> tuple[str, str]:
    return _pair(text, "a setting of Spark: write spark.executor.memory=2g")


def _storage_option(text: str) -> tuple[str, str]:
    return _pair(text, "an option of a storage: write AWS_REGION=eu-central-1")


def _pair(text: str, wanted: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError(f"{text!r} is not {wanted}")
    return name, value


lake_option = click.option(
    "--lake",
    required=True,
    metavar="PATH",
    help="Where the lake lies: a folder, or a url such as s3://bucket/lake.",
)
storage_option = click.option(
    "--storage-option",
    "storage_options",
    multiple=True,
    type=Written("option", _storage_option),
    metavar="NAME=VALUE",
    help="Of a lake at a url, what the environment does not say; may be repeated.",
)


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
