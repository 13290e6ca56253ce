"""The options of the source: what they mean, and what is refused before anything is read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from headrace.errors import InvalidInput, UnknownStore
from headrace.spark.schemas import JOBS, spark_schema
from headrace.spark.source.batch import Reader
from headrace.spark.source.extract.postgres_address import libpq_url
from headrace.spark.source.options import Predicates, SourceOptions

STORE = {"url": "sqlite:///jobs.db", "table": "jobs"}


def test_names_are_taken_in_any_case_and_with_or_without_underscores() -> None:
    options = SourceOptions.parse(
        {
            "URL": "redis://localhost/0",
            "Table": "events",
            "rows_per_partition": "7",
            "maxrowsperbatch": "8",
            "startingCursor": " latest ",
            "retrySeconds": "0.5",
            "PARTITIONS": "3",
        }
    )
    assert (options.rows_per_partition, options.max_rows_per_batch) == (7, 8)
    assert (options.partitions, options.starting_cursor, options.retry_seconds) == (
        3,
        "latest",
        0.5,
    )


def test_predicates_are_comma_lists_or_json_lists() -> None:
    options = SourceOptions.parse(
        STORE
        | {
            "tenant": "a, b ,c",
            "queue": ' ["with, comma", "ü"]',
            "state": "dead",
            "since": "2026-07-01T02:00:00+02:00",
            "until": "2026-07-02T00:00:00Z",
        }
    )
    assert options.predicates == Predicates(
        tenant=("a", "b", "c"),
        queue=("with, comma", "ü"),
        state=("dead",),
        since=datetime(2026, 7, 1, tzinfo=UTC),
        until=datetime(2026, 7, 2, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"table": "queues"}, "no table 'queues'.*attempts, events, jobs"),
        ({"tenants": "a"}, "'tenants' is not an option.*tenant"),
        ({"path": "/x"}, r"load\(\) takes no path; nothing was read: write .option"),
        ({"state": "ready"}, "'ready' is not a state.*blocked"),
        ({"since": "yesterday"}, "since 'yesterday' is not a time.*2026-07-01T00:00:00Z"),
        ({"until": "2026-07-01"}, "has no time zone"),
        ({"queue": "[1]"}, "not a JSON list of texts"),
        (
            {"queue": ""},
            "'queue' names nothing; nothing was read: leave it out to read every queue",
        ),
        ({"state": " , "}, "'state' names nothing"),
        ({"queue": '["a"'}, "not a JSON list of texts"),
        ({"partitions": "0"}, "partitions '0' must be a whole number of 1 or more"),
        ({"rowsPerPartition": "many"}, "must be a whole number"),
        ({"retrySeconds": "nan"}, "must be a number of seconds"),
        ({"url": "memory:"}, "executors are others: they cannot see it.*use sqlite:///path"),
        ({"url": "mysql://joe:hush@host/db"}, "answers to a url with 'mysql'"),
        ({"url": "jobs.db"}, "answers to a url with 'no scheme'"),
        ({"url": "sqlite:///"}, "names no file"),
        ({"table": "events", "state": "dead, ready"}, "'ready' is not a state.*abandoned, blocked"),
        ({"table": "attempts", "state": '["ended"]'}, "'ended' is not a state.*abandoned, blocked"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidInput, match=told) as caught:
        SourceOptions.parse(STORE | given)
    assert "nothing was read" in str(caught.value)
    assert "hush" not in str(caught.value)


def test_url_and_table_are_needed() -> None:
    with pytest.raises(InvalidInput, match="'url' is missing"):
        SourceOptions.parse({"table": "jobs"})
    with pytest.raises(InvalidInput, match=r"'table' is missing.*attempts \| events \| jobs"):
        SourceOptions.parse({"url": "sqlite:///jobs.db"})
    with pytest.raises(UnknownStore):
        SourceOptions.parse({"url": "http://[", "table": "jobs"})


def test_a_password_is_not_shown() -> None:
    url = "postgresql://joe:hush@db.example/jobs?schema=s&password=hush"
    options = SourceOptions.parse({"url": url, "table": "jobs"})
    assert "hush" not in repr(options)
    assert options.where == "postgresql://db.example/jobs"


def test_where_to_start_is_for_streams() -> None:
    options = SourceOptions.parse(STORE | {"startingCursor": "7"})
    with pytest.raises(InvalidInput, match=r"applies to a stream.*nothing was read"):
        Reader(options, spark_schema(JOBS))


def test_relative_paths_mean_the_folder_in_which_they_were_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = SourceOptions.parse({"url": "sqlite:///a%20b.db?synchronous=normal", "table": "jobs"})
    monkeypatch.chdir("/")
    assert options.sqlite_path == tmp_path / "a b.db"
    assert options.url.endswith("/a%20b.db?synchronous=normal")


@pytest.mark.parametrize(
    ("dsn", "expected"),
    [
        ("postgresql://u:p@h:5/db", "postgresql://u:p@h:5/db"),
        ("postgres://u@/db?host=/a b/c", "postgres://u@/db?host=%2Fa%20b%2Fc"),
        ("postgresql://h?database=d&sslmode=require", "postgresql://h?dbname=d&sslmode=require"),
        (
            "postgresql://h/d?search_path=a b&options=-c x=1",
            "postgresql://h/d?options=-c%20x%3D1%20-c%20search_path%3Da%5C%20b",
        ),
    ],
)
def test_a_url_in_the_words_of_libpq(dsn: str, expected: str) -> None:
    assert libpq_url(dsn) == expected
