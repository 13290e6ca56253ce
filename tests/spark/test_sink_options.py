"""What a write may be told, and which columns it takes: refused before a row moves, with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import types as t

from headrace.errors import InvalidInput, InvalidPriority
from headrace.model import Priority
from headrace.spark.sink.columns import check_schema
from headrace.spark.sink.options import SinkOptions
from headrace.spark.sink.writer import Writer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

URL = "sqlite:///jobs.db"


def schema_of(columns: str) -> t.StructType:
    """Needs a session: Spark itself reads the text."""
    schema = t.StructType.fromDDL(columns)
    assert isinstance(schema, t.StructType)
    return schema


def test_names_in_any_case_and_defaults() -> None:
    options = SinkOptions.parse({"URL": URL, "Priority": "HIGH", "checkpointLocation": "/x"})
    assert options.url == f"sqlite:///{Path('jobs.db').absolute()}"
    assert options.priority == Priority.HIGH
    assert not options.atomic
    assert options.key_hold is None
    assert SinkOptions.parse({"url": URL, "key_hold": "24h"}).key_hold == 86_400
    assert SinkOptions.parse({"url": URL, "key_hold": "90.5"}).key_hold == 90.5
    assert options.queue == "default"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "url"),
        ({"url": URL, "quue": "x"}, "'quue'.*batch_size.*queue"),
        ({"url": "memory:"}, "one process"),
        ({"url": URL, "atomic": "yes"}, "true or false"),
        ({"url": URL, "key_hold": "soon"}, "key_hold"),
        ({"url": URL, "key_hold": "-1"}, "key_hold"),
        ({"url": URL, "bad_rows": "drop"}, "fail or reject"),
        ({"url": URL, "bad_rows": "reject"}, "belong together"),
        ({"url": URL, "rejects": "/x"}, "belong together"),
        ({"url": URL, "batch_size": "many"}, "whole number"),
        ({"url": URL, "batch_size": "0"}, "1 or more"),
        ({"url": URL, "batch_size": "100001"}, "100000"),
        ({"url": URL, "write_id": "a b"}, "write_id"),
        ({"url": URL, "write_id": "x" * 65}, "64"),
        ({"url": URL, "queue": " "}, "queue is empty"),
        ({"url": URL, "app": ""}, "app is empty"),
    ],
)
def test_bad_options_say_what_is_wrong(options: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        SinkOptions.parse(options)


def test_paths_hold_in_whatever_folder_a_task_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = SinkOptions.parse(
        {
            "url": "sqlite:///a%20b.db?synchronous=normal",
            "bad_rows": "reject",
            "rejects": "bad",
            "keys": "k",
        }
    )
    assert options.url == f"sqlite:///{tmp_path}/a%20b.db?synchronous=normal"
    assert options.rejects == str(tmp_path / "bad")
    assert options.keys == str(tmp_path / "k")


def test_an_unknown_priority_lists_the_known() -> None:
    with pytest.raises(InvalidPriority, match="0 CRITICAL"):
        SinkOptions.parse({"url": URL, "priority": "urgent"})


def test_every_known_column_is_taken(spark: SparkSession) -> None:
    check_schema(
        schema_of(
            "type string, payload struct<a: int, b: array<map<string, decimal(10, 2)>>>, queue string, "
            "priority tinyint, run_at timestamp, tags map<string, int>, key string, tenant string, "
            "after array<string>"
        ),
        type_given=False,
    )
    check_schema(
        schema_of("payload string, tags array<string>, after string"),
        type_given=True,
    )


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("payload string", "type"),
        ("type string, typo string", "'typo'.*known are type, payload, queue"),
        ("type int", "type is int; it must be a string"),
        ("type string, payload binary", "payload is binary"),
        ("type string, payload array<int>", "a struct, a map, or a string of JSON"),
        ("type string, payload struct<a: struct<b: binary>>", r"payload\.a\.b is binary.*base64"),
        ("type string, payload map<int, string>", "a string, as in all JSON"),
        ("type string, payload struct<a: interval day to second>", r"payload\.a is interval"),
        ("type string, priority double", "whole number or a string"),
        ("type string, run_at timestamp_ntz", "time zone"),
        ("type string, run_at string", "a timestamp"),
        ("type string, tags string", "array of strings"),
        ("type string, tags map<string, double>", "array of strings"),
        ("type string, after array<int>", "array of strings"),
    ],
)
def test_bad_columns_say_what_is_wrong(spark: SparkSession, columns: str, said: str) -> None:
    schema = schema_of(columns)
    with pytest.raises(InvalidInput, match=said):
        check_schema(schema, type_given=False)


def test_two_fields_of_one_name_are_refused() -> None:
    payload = t.StructType([t.StructField("a", t.LongType()), t.StructField("a", t.LongType())])
    with pytest.raises(InvalidInput, match="one name"):
        check_schema(t.StructType([t.StructField("payload", payload)]), type_given=True)


def test_overwrite_is_refused() -> None:
    schema = t.StructType([t.StructField("type", t.StringType())])
    with pytest.raises(InvalidInput, match="append"):
        Writer(SinkOptions.parse({"url": URL}), schema, overwrite=True)
