"""The stream reader as Spark drives it, batch by batch, without Spark: offsets, bounds, late commits."""

from __future__ import annotations

import asyncio
import json
import pickle
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, ReadMaxRows

from headrace.errors import (
    HeadraceError,
    InvalidCursor,
    InvalidInput,
    LogTrimmed,
    StoreUnavailable,
)
from headrace.spark.schemas import EVENTS, spark_schema
from headrace.spark.source.options import SourceOptions
from headrace.spark.source.patience import patiently
from headrace.spark.source.stream import StreamReader
from headrace.stores.base import JobStore
from headrace.stores.postgres import PostgresStore
from tests.spark.sources import Row, add_jobs, complete_jobs, event_rows, fill, on_store
from tests.stores.postgres.jobs import draft, insert
from tests.stores.postgres.server import Schemas

Offset = dict[str, Any]
LATER = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
def postgres_url(postgres_schemas: Schemas) -> Iterator[str]:
    url = postgres_schemas.take()
    yield url
    asyncio.run(postgres_schemas.give_back(url))


class Query:
    """A stream and its checkpoint: what Spark does with a reader."""

    def __init__(self, url: str, **options: Any) -> None:
        self._options = {name: str(value) for name, value in options.items()}
        self._url = url
        self.offsets: list[str] = []
        self.batches: list[list[Row]] = []
        self.reader = self.restart()

    @property
    def rows(self) -> list[Row]:
        return [row for batch in self.batches for row in batch]

    def restart(self, url: str | None = None) -> StreamReader:
        """A new process, with nothing but the checkpoint."""
        options = {"url": url or self._url, "table": "events", "retrySeconds": "0", **self._options}
        self.reader = StreamReader(SourceOptions.parse(options), spark_schema(EVENTS))
        return self.reader

    def step(self, limit: Any = None) -> bool:
        """One batch; False if there was nothing new."""
        if not self.offsets:
            self.offsets.append(json.dumps(self.reader.initialOffset()))
        start = json.loads(self.offsets[-1])
        end = self.reader.latestOffset(start, limit or self.reader.getDefaultReadLimit())
        if end == start:
            return False
        self.offsets.append(json.dumps(end))
        self.batches.append(self.replay(-1))
        return True

    def replay(self, batch: int) -> list[Row]:
        """Read a batch (again), as tasks do."""
        start, end = (json.loads(offset) for offset in self.offsets[batch - 1 :][:2])
        rows: list[Row] = []
        for piece in self.reader.partitions(start, end):
            reader, copy = pickle.loads(pickle.dumps((self.reader, piece)))
            for found in reader.read(copy):
                assert found.schema == EVENTS
                rows += found.to_pylist()
        return rows

    def run(self) -> None:
        while self.step():
            pass


def in_order(url: str, rows: list[Row]) -> list[Row]:
    """In the order of the log: by seq, and on PostgreSQL by transaction first."""
    return sorted(rows, key=lambda row: [int(part) for part in row["cursor"].split(":")])


def test_batches_are_bounded_and_every_event_comes_once(durable_url: str) -> None:
    fill(durable_url)
    query = Query(durable_url, maxRowsPerBatch=40, rowsPerPartition=15)
    query.run()
    expected = in_order(durable_url, event_rows(durable_url))
    assert in_order(durable_url, query.rows) == expected
    sizes = [len(batch) for batch in query.batches]
    assert max(sizes) == 40
    assert len(sizes) == -(-len(expected) // 40)
    # New ones, and only those, in the next batch; a restart changes nothing.
    add_jobs(durable_url, 3)
    query.restart()
    query.run()
    assert len(query.batches[-1]) == 3
    assert in_order(durable_url, query.rows) == in_order(durable_url, event_rows(durable_url))
    # A batch that is read again is the same batch.
    assert in_order(durable_url, query.replay(-2)) == in_order(durable_url, query.batches[-2])


def test_available_now_ends_where_the_log_ended_when_it_began(durable_url: str) -> None:
    add_jobs(durable_url, 5)
    query = Query(durable_url, maxRowsPerBatch=2)
    query.reader.prepareForTriggerAvailableNow()
    assert query.step()
    add_jobs(durable_url, 5)
    query.run()
    assert len(query.rows) == 5
    query.restart().prepareForTriggerAvailableNow()
    query.run()
    assert len(query.rows) == 10


def test_limits_of_other_kinds(durable_url: str) -> None:
    add_jobs(durable_url, 5)
    query = Query(durable_url, maxRowsPerBatch=2)
    with pytest.raises(InvalidInput, match="limited by rows, not by ReadMaxFiles"):
        query.step(ReadMaxFiles(1))
    assert query.step(ReadMaxRows(3))
    assert query.step(ReadAllAvailable())
    assert [len(batch) for batch in query.batches] == [3, 2]


def test_where_a_stream_starts(durable_url: str) -> None:
    add_jobs(durable_url, 4)
    cursors = [row["cursor"] for row in in_order(durable_url, event_rows(durable_url))]
    latest = Query(durable_url, startingCursor="latest")
    behind = Query(durable_url, startingCursor=cursors[1])
    assert not latest.step()
    behind.run()
    assert {row["cursor"] for row in behind.rows} == set(cursors[2:])
    add_jobs(durable_url, 1)
    latest.run()
    assert len(latest.rows) == 1
    with pytest.raises(InvalidCursor):
        Query(durable_url, startingCursor="here").step()


def test_an_empty_log_is_waited_for(durable_url: str) -> None:
    add_jobs(durable_url, 0)
    query = Query(durable_url)
    assert not query.step()
    query.restart()
    assert not query.step()
    add_jobs(durable_url, 2)
    query.run()
    assert len(query.rows) == 2


def test_predicates_filter_a_stream(durable_url: str) -> None:
    add_jobs(durable_url, 3, tenant="acme")
    add_jobs(durable_url, 3, tenant="other")
    query = Query(durable_url, tenant="acme", maxRowsPerBatch=4)
    query.run()
    assert [row["tenant"] for row in query.rows] == ["acme"] * 3
    assert len(query.offsets) == 3


def test_states_filter_a_stream_and_its_cursor_goes_on(durable_url: str) -> None:
    """It stops where a stream without a filter stops, however few of the events it hands out."""
    fill(durable_url)
    plain = Query(durable_url, maxRowsPerBatch=20)
    query = Query(durable_url, state="completed, dead", maxRowsPerBatch=20, rowsPerPartition=7)
    plain.run()
    query.run()
    assert query.offsets == plain.offsets
    assert 0 < len(query.rows) < len(plain.rows) / 2
    assert [in_order(durable_url, batch) for batch in query.batches] == [
        [row for row in in_order(durable_url, batch) if row["after"] in ("completed", "dead")]
        for batch in plain.batches
    ]
    # Events that it leaves out are behind it all the same, after a restart, too.
    add_jobs(durable_url, 5)
    assert query.step()
    assert query.batches[-1] == []
    query.restart()
    assert not query.step()
    complete_jobs(durable_url, 30)
    query.run()
    expected = [row for row in event_rows(durable_url) if row["after"] in ("completed", "dead")]
    assert in_order(durable_url, query.rows) == in_order(durable_url, expected)


# --- what must be told ---------------------------------------------------------------------------


def trim(url: str, upto: str, limit: int = 1000) -> int:
    async def trimmed(store: JobStore) -> int:
        return await store.trim([upto], LATER, limit)

    return on_store(url, trimmed)


def test_a_log_trimmed_past_the_checkpoint_ends_the_stream(durable_url: str) -> None:
    add_jobs(durable_url, 10)
    cursors = [row["cursor"] for row in in_order(durable_url, event_rows(durable_url))]
    query = Query(durable_url, maxRowsPerBatch=4)
    assert query.step()
    assert query.step()
    assert trim(durable_url, cursors[3]) == 4
    query.restart()
    with pytest.raises(LogTrimmed):
        query.replay(-2)  # what was read of the trimmed part is gone for a replay, too
    assert trim(durable_url, cursors[8]) == 5
    with pytest.raises(LogTrimmed):
        query.replay(-1)
    with pytest.raises(LogTrimmed):
        query.step()
    fresh = Query(durable_url)
    fresh.run()
    assert len(fresh.rows) == 1


def test_a_log_trimmed_up_to_the_checkpoint_does_not(durable_url: str) -> None:
    add_jobs(durable_url, 6)
    query = Query(durable_url)
    query.run()
    assert trim(durable_url, json.loads(query.offsets[-1])["cursor"]) == 6
    query.restart()
    assert not query.step()
    add_jobs(durable_url, 2)
    query.restart()
    query.run()
    assert len(query.rows) == 8


def test_a_checkpoint_of_another_store_is_refused(
    durable_url: str, tmp_path: Path, postgres_schemas: Schemas
) -> None:
    add_jobs(durable_url, 3)
    query = Query(durable_url)
    query.run()
    other = _other(durable_url, tmp_path, postgres_schemas)
    add_jobs(other, 2)
    query.restart(other)
    with pytest.raises(InvalidCursor, match="made on another store than"):
        query.step()
    add_jobs(other, 4)  # by now it has an event at that place
    query.restart(other)
    with pytest.raises(InvalidCursor, match="made on another store than"):
        query.step()


def _other(url: str, tmp_path: Path, schemas: Schemas) -> str:
    if url.startswith("sqlite"):
        return f"sqlite:///{tmp_path}/other.db"
    if url.startswith("redis"):
        return url.replace("prefix=", "prefix=other-")
    return schemas.take()


def test_a_log_that_goes_back_ends_the_stream_that_reads_it(tmp_path: Path) -> None:
    """A server failed over to one that was behind, or a backup was put in its place."""
    url = f"sqlite:///{tmp_path}/jobs.db"
    add_jobs(url, 3)
    shutil.copy(tmp_path / "jobs.db", tmp_path / "backup.db")
    add_jobs(url, 2)
    query = Query(url)
    query.run()
    for path in tmp_path.glob("jobs.db*"):
        path.unlink()
    shutil.copy(tmp_path / "backup.db", tmp_path / "jobs.db")
    with pytest.raises(InvalidCursor, match="older state of it was restored"):
        query.step()
    add_jobs(url, 4)  # by now the log is longer than it was, and two of these would be passed over
    with pytest.raises(InvalidCursor, match="older state of it was restored"):
        query.step()


def test_a_cursor_ahead_of_the_log_is_refused(durable_url: str) -> None:
    add_jobs(durable_url, 2)
    last = in_order(durable_url, event_rows(durable_url))[-1]["cursor"]
    ahead = ":".join(str(int(part) + 1000) for part in last.split(":"))
    with pytest.raises(InvalidCursor, match=f"ends at {last}, before the cursor {ahead}"):
        Query(durable_url, startingCursor=ahead).step()


def test_an_offset_from_the_future_is_refused(durable_url: str) -> None:
    add_jobs(durable_url, 1)
    query = Query(durable_url)
    query.run()
    query.offsets.append(json.dumps(json.loads(query.offsets[-1]) | {"version": 2}))
    with pytest.raises(InvalidCursor, match=r"offset of version 2.*use the newer Headrace"):
        query.step()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"table": "jobs"}, "the table jobs cannot be read as a stream"),
        ({"table": "attempts"}, "the table attempts cannot be read as a stream"),
        ({"since": "2026-01-01T00:00:00Z"}, "'since' applies to spark.read, not to a stream"),
        ({"until": "2026-01-01T00:00:00Z"}, "'until' applies to spark.read, not to a stream"),
    ],
)
def test_what_is_no_stream_is_refused(given: dict[str, str], told: str) -> None:
    options = {"url": "sqlite:///jobs.db", "table": "events"} | given
    with pytest.raises(InvalidInput, match=told):
        StreamReader(SourceOptions.parse(options), spark_schema(EVENTS))


def test_a_stream_of_nothing_says_so_at_once(tmp_path: Path) -> None:
    query = Query(f"sqlite:///{tmp_path}/nothing.db", retrySeconds=600)
    with pytest.raises(StoreUnavailable, match="nothing was created"):
        query.step()


# --- a store that is away ------------------------------------------------------------------------


def test_a_store_that_is_away_is_waited_for_with_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now, calls = 0.0, 0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    def answer(after_seconds: float) -> str:
        nonlocal calls
        calls += 1
        if now < after_seconds:
            raise StoreUnavailable("away")
        return "here"

    monkeypatch.setattr("headrace.spark.source.patience.time.sleep", sleep)
    monkeypatch.setattr("headrace.spark.source.patience.time.monotonic", lambda: now)
    assert patiently(lambda: answer(7.0), 10.0) == "here"
    assert 5 < calls < 20
    with pytest.raises(StoreUnavailable):
        patiently(lambda: answer(99.0), 10.0)
    assert 15 < now < 20
    calls = 0
    with pytest.raises(HeadraceError):
        patiently(_refuse, 10.0)
    assert now < 20


def _refuse() -> None:
    raise InvalidInput("no")


def test_a_stream_goes_on_when_its_store_is_back(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    add_jobs(url, 2)
    query = Query(url, retrySeconds=30)
    query.run()
    add_jobs(url, 1)
    path, away = tmp_path / "jobs.db", tmp_path / "away.db"
    path.rename(away)

    async def back() -> None:
        turn = asyncio.create_task(asyncio.to_thread(query.step))
        await asyncio.sleep(0.3)
        assert not turn.done()
        away.rename(path)
        assert await turn

    asyncio.run(back())
    assert len(query.rows) == 3


# --- PostgreSQL: transactions that commit late ---------------------------------------------------


def test_a_late_commit_is_neither_lost_nor_doubled(
    postgres_schemas: Schemas, postgres_url: str
) -> None:
    query = Query(postgres_url, maxRowsPerBatch=100)

    async def story() -> None:
        store = await PostgresStore.open(postgres_url)
        await insert(store, draft())
        slow = await asyncpg.connect(postgres_schemas.url)
        transaction = slow.transaction()
        await transaction.start()
        await insert(store.on(slow), draft(), draft())
        await insert(store, draft())
        await asyncio.to_thread(query.run)
        assert len(query.rows) == 1  # what follows is committed, but something may come before it
        await transaction.commit()
        await slow.close()
        await asyncio.to_thread(query.run)
        await store.close()

    asyncio.run(story())
    assert in_order(postgres_url, query.rows) == in_order(postgres_url, event_rows(postgres_url))
    assert len(query.rows) == 4


def test_a_stream_under_writers_that_commit_in_any_order_is_exact(
    postgres_schemas: Schemas, postgres_url: str
) -> None:
    add_jobs(postgres_url, 1)
    query = Query(postgres_url, maxRowsPerBatch=10, rowsPerPartition=3)

    async def writer(store: PostgresStore, number: int) -> None:
        connection = await asyncpg.connect(postgres_schemas.url)
        for turn in range(12):
            transaction = connection.transaction()
            await transaction.start()
            await insert(store.on(connection), *(draft() for _ in range(1 + turn % 3)))
            await asyncio.sleep(0.003 * ((number * 7 + turn * 3) % 5))
            await (transaction.rollback() if turn % 5 == 4 else transaction.commit())
        await connection.close()

    async def story() -> None:
        store = await PostgresStore.open(postgres_url)
        writers = asyncio.gather(*(writer(store, number) for number in range(4)))
        while not writers.done():
            await asyncio.to_thread(query.step)
        await writers
        await store.close()

    asyncio.run(story())
    query.run()
    assert len(query.batches) > 3
    assert in_order(postgres_url, query.rows) == in_order(postgres_url, event_rows(postgres_url))
