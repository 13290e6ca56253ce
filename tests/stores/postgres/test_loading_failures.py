"""Answers that are lost on the way, staged rows that are gone, and loads that must not wait or swell."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import asyncpg
import pyarrow as pa
import pytest

from headrace.errors import StoreError, StoreUnavailable
from headrace.manager import JobManager
from headrace.model import Job
from headrace.spark.sink import bulk, opening
from headrace.spark.sink.failures import RowsChanged
from headrace.spark.sink.message import TaskDone
from headrace.spark.sink.naming import Naming
from headrace.spark.sink.writer import Writer
from headrace.stores.postgres import opening as store_opening
from headrace.stores.postgres.bulk import STAGED_PREFIX, Loader, StagedLoad
from tests.spark.writing import events_of, jobs_of, payloads, run_task, with_manager, writer
from tests.stores.postgres.server import Schemas
from tests.stores.proxy import Proxy, proxy_to


@pytest.fixture
def url(postgres_schemas: Schemas) -> Iterator[str]:
    taken = postgres_schemas.take()
    yield taken
    asyncio.run(postgres_schemas.give_back(taken))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_PAUSE_SECONDS", 0.001)


def numbers(url: str) -> list[int]:
    return sorted(job.payload["n"] for job in jobs_of(url))


def table_of(write_id: str) -> str:
    return STAGED_PREFIX + bulk.staged_name(write_id)


def test_an_atomic_write_whose_commit_was_not_confirmed_is_stored_once_and_succeeds(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [StoreUnavailable("the connection broke")]
    transaction = StagedLoad.transaction

    @contextlib.asynccontextmanager
    async def lossy(load: StagedLoad) -> AsyncIterator[Any]:
        async with transaction(load) as connection:
            yield connection
        if answers:
            raise answers.pop()

    rows = payloads(9, key=["a", "b", *[None] * 7], after=[*[None] * 8, "w-00000-000000002"])
    own = writer(url, rows.schema, atomic="true")
    done = run_task(own, [rows])
    monkeypatch.setattr(StagedLoad, "transaction", lossy)
    own.commit([done])
    assert not answers
    assert numbers(url) == list(range(9))
    assert len(events_of(url)) == 9


def test_rows_that_were_staged_again_because_the_answer_was_lost_count_once(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [StoreUnavailable("the connection broke")]
    stage = Loader.stage

    async def lossy(loader: Loader, *arguments: Any) -> None:
        await stage(loader, *arguments)
        if answers:
            raise answers.pop()

    monkeypatch.setattr(Loader, "stage", lossy)
    rows = payloads(9)
    own = writer(url, rows.schema, atomic="true", batch_size="4")
    own.commit([run_task(own, [rows.slice(0, 5), rows.slice(5)])])
    assert not answers
    assert numbers(url) == list(range(9))


def test_a_connection_that_breaks_while_rows_are_sent_costs_another_try(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server waits in the middle of the rows, so that the rest cannot be sent, and then is gone."""
    monkeypatch.setattr(bulk, "CHUNK_BYTES_MAX", 1 << 30)
    to = store_opening.parse(url, schema="headrace", pool_size=1)
    # PostgreSQL stores a thousand rows at a time; what comes after them must be more than sockets hold.
    texts = [f'{{"n":{number},"x":"{"x" * 20_000}"}}' for number in range(3000)]
    rows = pa.record_batch({"payload": pa.array(texts)})
    with_manager(url, _now)  # makes the tables

    async def load_meanwhile() -> TaskDone:
        blocker, watcher = await asyncpg.connect(to.dsn), await asyncpg.connect(to.dsn)
        async with proxy_to(url) as proxy:
            own = writer(_through(proxy, url), rows.schema)
            blocking = blocker.transaction()
            await blocking.start()
            await blocker.execute(_SAME_ID.format(schema=to.schema), _id_of(own, 3))
            loading = asyncio.create_task(asyncio.to_thread(run_task, own, [rows]))
            while not await watcher.fetchval(_WAITS_IN_COPY, f'COPY "{to.schema}"%'):
                assert not loading.done()
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.5)  # until nothing more can be sent
            proxy.cut()
            await blocking.rollback()
            done = await loading
        await blocker.close()
        await watcher.close()
        return done

    done = asyncio.run(load_meanwhile())
    assert (done.created, done.repeated) == (3000, 0)
    assert len(events_of(url)) == 3000


def _id_of(own: Writer, row: int) -> str:
    return Naming(own.write_id, 0).by_row(row)


def _through(proxy: Proxy, url: str) -> str:
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    query = urlencode([pair for pair in parse_qsl(parts.query) if pair[0] != "host"])
    return f"{parts.scheme}://{user}@127.0.0.1:{proxy.port}{parts.path}?{query}"


_SAME_ID = """
    INSERT INTO "{schema}".bodies (seq, created_at, lane, depth, id, tags, payload)
    VALUES (-1, now(), 1, 0, $1, '{{}}', '1')
"""
_WAITS_IN_COPY = """
    SELECT count(*) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND query LIKE $1
"""


@pytest.mark.parametrize("left", ["TRUNCATE", "DROP TABLE"])
def test_staged_rows_that_are_gone_fail_the_write_at_once_and_nothing_is_stored(
    url: str, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    """A crash of the server empties the table; another write of the same name drops it."""
    monkeypatch.setattr(opening, "_PAUSE_SECONDS", 1000.0)
    rows = payloads(5)
    own = writer(url, rows.schema, atomic="true")
    done = run_task(own, [rows])
    to = store_opening.parse(url, schema="headrace", pool_size=1)

    async def lose() -> None:
        connection = await asyncpg.connect(to.dsn)
        await connection.execute(f'{left} "{to.schema}".{table_of("w")}')
        await connection.close()

    asyncio.run(lose())
    with pytest.raises(StoreError, match=r"0 of 5 staged rows.*nothing was stored: write again"):
        own.commit([done])
    assert jobs_of(url) == []


def test_an_atomic_write_does_not_wait_for_a_backup_that_reads_its_staged_rows(url: str) -> None:
    rows = payloads(5)
    own = writer(url, rows.schema, atomic="true")
    done = run_task(own, [rows])
    to = store_opening.parse(url, schema="headrace", pool_size=1)

    async def commit_meanwhile() -> None:
        connection = await asyncpg.connect(to.dsn)
        try:
            async with connection.transaction():
                await connection.execute(
                    f'LOCK TABLE "{to.schema}".{table_of("w")} IN ACCESS SHARE MODE'
                )
                await asyncio.wait_for(asyncio.to_thread(own.commit, [done]), 60)
        finally:
            await connection.close()

    asyncio.run(commit_meanwhile())
    assert numbers(url) == list(range(5))
    own.commit([run_task(own, [rows])])  # and the next one finds nothing in its way
    assert len(jobs_of(url)) == 5


@pytest.mark.parametrize("atomic", ["true", "false"])
def test_rows_that_changed_are_told_by_the_name_of_the_job(url: str, atomic: str) -> None:
    rows = payloads(4)
    run_task(writer(url, rows.schema), [rows.slice(1, 1)])
    own = writer(url, rows.schema, atomic=atomic)
    with pytest.raises(RowsChanged) as told:
        own.commit([run_task(own, [rows])])
    assert told.value.message.startswith("job w-00000-000000000 was stored with other contents")
    assert numbers(url) == [1]


def test_jobs_are_born_when_they_are_stored_not_when_their_rows_came(url: str) -> None:
    """A slow source fills a chunk for minutes; lifetimes and the log must not begin before it is stored."""
    rows = payloads(4, key=["a", None, "b", None])
    own = writer(url, rows.schema)
    came: list[datetime] = []

    def slowly(other: ThreadPoolExecutor) -> Iterator[pa.RecordBatch]:
        for start in (0, 2):
            yield rows.slice(start, 2)
            came.append(other.submit(with_manager, url, _now).result())

    with ThreadPoolExecutor(1) as other:
        run_task(own, slowly(other))
    jobs: list[Job] = jobs_of(url)
    assert len(jobs) == 4
    for job, event in zip(jobs, events_of(url), strict=True):
        assert came[-1] <= job.created_at == job.run_at == job.updated_at == event.at
        assert job.expires_at is not None
        assert (job.expires_at - job.created_at).days == 7


async def _now(manager: JobManager) -> datetime:
    return await manager.store.now()


def test_large_payloads_are_loaded_in_short_chunks(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "CHUNK_BYTES_MAX", 10_000)
    loads: list[int] = []
    load = Loader.load

    async def noted(loader: Loader, batches: list[pa.RecordBatch], *arguments: Any) -> Any:
        loads.append(sum(batch.num_rows for batch in batches))
        return await load(loader, batches, *arguments)

    monkeypatch.setattr(Loader, "load", noted)
    texts = pa.array([f'"{"x" * 3000}"'] * 20)
    rows = pa.record_batch({"payload": texts})
    run_task(writer(url, rows.schema), [rows.slice(place, 2) for place in range(0, 20, 2)])
    assert loads == [4, 4, 4, 4, 4]
