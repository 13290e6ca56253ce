"""RedisJobStoreOptions and SqlJobStoreOptions: each option does something, on real servers."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest
from redis.asyncio import Redis

from headrace.connect import connect
from headrace.contracts.job_store import (
    Job,
    JobManager,
    JobStore,
    MethodResult,
    RedisJobStoreOptions,
    SqlJobStoreOptions,
)
from headrace.errors import HeadraceError, InvalidInput, InvalidLimit, StoreUnavailable
from tests.stores.postgres.server import Schemas
from tests.stores.redis.server import base_url


def data(answer: MethodResult[Any]) -> Any:
    assert answer.is_success, answer.error
    return answer.data


def test_the_defaults_are_the_texts() -> None:
    redis, sql = RedisJobStoreOptions(), SqlJobStoreOptions()
    assert (redis.connection_string, redis.jobs_key_prefix) == ("localhost:6379", "async_jobs:")
    assert redis.retry_count == 3
    assert (sql.connection_string, sql.table_name) == ("", "AsyncJobs")
    assert sql.auto_create_tables is True


@pytest.mark.parametrize(
    "wrong",
    [
        RedisJobStoreOptions(connection_string=""),
        RedisJobStoreOptions(connection_string="postgresql://localhost/x"),
        RedisJobStoreOptions(jobs_key_prefix=""),
        RedisJobStoreOptions(jobs_key_prefix="{a}"),
        RedisJobStoreOptions(retry_count=-1),
        RedisJobStoreOptions(retry_count=None),  # type: ignore[arg-type]  # on purpose
        SqlJobStoreOptions(),
        SqlJobStoreOptions(connection_string="redis://localhost"),
        SqlJobStoreOptions(connection_string="sqlite:///x.db", table_name="Other"),
        SqlJobStoreOptions(connection_string="postgresql://127.0.0.1/x", table_name=""),
        SqlJobStoreOptions(connection_string="sqlite:///x.db", auto_create_tables=1),  # type: ignore[arg-type]
    ],
)
async def test_what_makes_no_sense_is_refused(
    wrong: RedisJobStoreOptions | SqlJobStoreOptions,
) -> None:
    with pytest.raises((InvalidInput, InvalidLimit)):
        await JobStore.open(wrong)


def test_no_option_shows_a_password() -> None:
    for options in (
        RedisJobStoreOptions(connection_string="rediss://me:s3cret@host:6380/1?password=s3cret"),
        SqlJobStoreOptions(connection_string="postgresql://me:s3cret@host/db?password=s3cret"),
    ):
        assert "s3cret" not in repr(options)
        assert "host" in repr(options)


async def test_opening_is_tried_again_too(monkeypatch: pytest.MonkeyPatch, prefix: str) -> None:
    away = Unreachable(connect, times=2)
    monkeypatch.setattr("headrace.contracts.job_store.store.connect", away)
    for retry_count, opens in ((1, False), (2, True)):
        away.calls = 0
        options = RedisJobStoreOptions(
            connection_string=base_url(), jobs_key_prefix=prefix, retry_count=retry_count
        )
        if opens:
            await (await JobStore.open(options)).close()
        else:
            with pytest.raises(StoreUnavailable):
                await JobStore.open(options)
        assert away.calls == retry_count + 1


# --- Redis ---------------------------------------------------------------------------------------


@pytest.fixture
async def server() -> AsyncIterator[Redis]:
    client = Redis.from_url(base_url())
    yield client
    await client.aclose()


@pytest.fixture
def prefix() -> str:
    return f"opt-{secrets.token_hex(4)}:"


async def test_redis_is_found_by_host_and_port_and_keys_have_the_prefix(
    server: Redis, prefix: str
) -> None:
    address = urlsplit(base_url())
    place = f"{address.hostname}:{address.port}"
    options = RedisJobStoreOptions(connection_string=place, jobs_key_prefix=prefix)
    async with await JobManager.open(options) as manager:
        job = Job(payload="x" * 300)
        data(await manager.submit_job(job))
    keys = [key.decode() async for key in server.scan_iter(match=f"*{prefix}*")]
    assert keys
    assert all(key.startswith(f"{{{prefix}}}") for key in keys)
    other = RedisJobStoreOptions(connection_string=base_url(), jobs_key_prefix=f"{prefix}b")
    async with await JobStore.open(other) as elsewhere:
        assert not (await elsewhere.get_job_by_id(job.id)).is_success
    again = RedisJobStoreOptions(connection_string=base_url(), jobs_key_prefix=prefix)
    async with await JobStore.open(again) as same:
        assert data(await same.get_job_by_id(job.id)).payload == "x" * 300


class Unreachable:
    """A store's call that finds the server away so many times."""

    def __init__(self, right: Callable[..., Any], times: int) -> None:
        self.right, self.times, self.calls = right, times, 0

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        if self.calls <= self.times:
            raise StoreUnavailable("the server is away; nothing was written")
        return await self.right(*args, **kwargs)


@pytest.mark.parametrize(("retry_count", "stored"), [(3, True), (2, False), (0, False)])
async def test_a_call_is_tried_again_retry_count_times(
    prefix: str, retry_count: int, stored: bool
) -> None:
    options = RedisJobStoreOptions(
        connection_string=base_url(), jobs_key_prefix=prefix, retry_count=retry_count
    )
    async with await JobStore.open(options) as store:
        core = store.records.manager.store
        away = Unreachable(core.insert, times=3)
        core.insert = away  # type: ignore[method-assign]
        answer = await store.create_job(Job(id="j"))
        assert away.calls == min(retry_count, 3) + 1
        assert answer.is_success is stored
        if not stored:
            assert answer.error is not None
            assert answer.error.code == "STORE_UNAVAILABLE"
        assert (await store.get_job_by_id("j")).is_success is stored


# --- SQL -----------------------------------------------------------------------------------------


@pytest.fixture
def database(postgres_schemas: Schemas) -> str:
    return postgres_schemas.url


@pytest.fixture
async def connection(database: str) -> AsyncIterator[asyncpg.Connection]:
    opened = await asyncpg.connect(database)
    yield opened
    await opened.close()


@pytest.fixture
def table() -> str:
    return f"Async Jobs {secrets.token_hex(4)}"


async def _tables(connection: asyncpg.Connection, schema: str) -> int:
    count: int = await connection.fetchval(
        "SELECT count(*) FROM information_schema.tables WHERE table_schema = $1", schema
    )
    return count


async def test_postgresql_keeps_the_jobs_under_table_name_and_creates_it_if_told(
    database: str, connection: asyncpg.Connection, table: str
) -> None:
    try:
        never = SqlJobStoreOptions(
            connection_string=database, table_name=table, auto_create_tables=False
        )
        with pytest.raises(HeadraceError):
            await JobStore.open(never)
        assert await _tables(connection, table) == 0
        options = SqlJobStoreOptions(connection_string=database, table_name=table)
        async with await JobManager.open(options) as manager:
            data(await manager.submit_job(Job(id="j")))
        assert await connection.fetchval(f'SELECT count(*) FROM "{table}".jobs') == 1
        async with await JobStore.open(never) as there:  # it is there by now
            assert data(await there.get_job_by_id("j")).id == "j"
        elsewhere = SqlJobStoreOptions(connection_string=database, table_name=f"{table} b")
        async with await JobStore.open(elsewhere) as other:
            assert not (await other.get_job_by_id("j")).is_success
    finally:
        for name in (table, f"{table} b"):
            await connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')


async def test_sqlite_creates_its_file_only_if_told(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    url = f"sqlite:///{path}"
    with pytest.raises(StoreUnavailable):
        await JobStore.open(SqlJobStoreOptions(connection_string=url, auto_create_tables=False))
    assert not path.exists()
    async with await JobStore.open(SqlJobStoreOptions(connection_string=url)) as store:
        data(await store.create_job(Job(id="j")))
    kept = SqlJobStoreOptions(connection_string=url, auto_create_tables=False)
    async with await JobStore.open(kept) as store:
        assert data(await store.get_job_by_id("j")).id == "j"
