"""Submission inside the caller's own transaction, on every kind of connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import asyncpg
import pytest

from headrace.clock import StoreClock
from headrace.connect import connect
from headrace.errors import DuplicateJob, InvalidInput, StoreError
from headrace.manager import JobManager
from headrace.model import State
from headrace.policy import Policies, Policy
from headrace.spec import JobSpec
from headrace.stores.postgres import PostgresStore
from tests.stores.postgres.jobs import draft, insert
from tests.stores.postgres.server import without_schema


class Caller:
    """A program with a connection and a transaction of its own."""

    def __init__(self, connection: Any, run: Callable[[str], Awaitable[Any]], end: Any) -> None:
        self.connection = connection
        self.run = run
        self._end = end

    async def end(self, *, commit: bool) -> None:
        await self._end("COMMIT" if commit else "ROLLBACK")


async def _asyncpg(url: str) -> AsyncIterator[Caller]:
    connection = await asyncpg.connect(url)
    await connection.execute("BEGIN")
    yield Caller(connection, connection.execute, connection.execute)
    await connection.close()


async def _psycopg(url: str) -> AsyncIterator[Caller]:
    psycopg = pytest.importorskip("psycopg")
    connection = await psycopg.AsyncConnection.connect(url)
    await connection.execute("SET TimeZone = 'Asia/Kathmandu'")
    yield Caller(connection, connection.execute, connection.execute)
    await connection.close()


async def _sqlalchemy(url: str, driver: str) -> AsyncIterator[Caller]:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    pytest.importorskip(driver)
    asyncio = pytest.importorskip("sqlalchemy.ext.asyncio")
    engine = asyncio.create_async_engine(url.replace("postgresql:", f"postgresql+{driver}:"))
    async with engine.connect() as connection:

        async def end(how: str) -> None:
            await (connection.commit() if how == "COMMIT" else connection.rollback())

        yield Caller(connection, lambda text: connection.execute(sqlalchemy.text(text)), end)
    await engine.dispose()


async def _session(url: str) -> AsyncIterator[Caller]:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    asyncio = pytest.importorskip("sqlalchemy.ext.asyncio")
    engine = asyncio.create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:"))
    async with asyncio.AsyncSession(engine) as session:

        async def end(how: str) -> None:
            await (session.commit() if how == "COMMIT" else session.rollback())

        yield Caller(session, lambda text: session.execute(sqlalchemy.text(text)), end)
    await engine.dispose()


async def _sync_psycopg(url: str) -> AsyncIterator[Caller]:
    psycopg = pytest.importorskip("psycopg")
    with psycopg.Connection.connect(url) as connection:
        connection.execute("SET TimeZone = 'Asia/Kathmandu'")
        execute = partial(asyncio.to_thread, connection.execute)
        yield Caller(connection, execute, execute)


async def _sync_sqlalchemy(url: str, what: str) -> AsyncIterator[Caller]:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    orm = pytest.importorskip("sqlalchemy.orm")
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))

    class OurSession(orm.Session):  # type: ignore[misc, name-defined]  # as programs and libraries do
        pass

    made = {"connection": engine.connect, "session": lambda: OurSession(engine)}[what]
    with made() as connection:

        async def end(how: str) -> None:
            connection.commit() if how == "COMMIT" else connection.rollback()

        async def run(text: str) -> None:
            connection.execute(sqlalchemy.text(text))

        yield Caller(connection, run, end)
    engine.dispose()


@pytest.fixture(
    params=[
        "asyncpg",
        "psycopg",
        "sqlalchemy+asyncpg",
        "sqlalchemy+psycopg",
        "session",
        "sync psycopg",
        "sync sqlalchemy+connection",
        "sync sqlalchemy+session",
    ]
)
async def caller(request: pytest.FixtureRequest, postgres_url: str) -> AsyncIterator[Caller]:
    url = without_schema(postgres_url)
    kind, _, driver = request.param.partition("+")
    made = {
        "asyncpg": lambda: _asyncpg(url),
        "psycopg": lambda: _psycopg(url),
        "sqlalchemy": lambda: _sqlalchemy(url, driver),
        "session": lambda: _session(url),
        "sync psycopg": lambda: _sync_psycopg(url),
        "sync sqlalchemy": lambda: _sync_sqlalchemy(url, driver),
    }[kind]()
    async for one in made:
        yield one


@pytest.fixture
async def manager(store: PostgresStore) -> JobManager:
    return JobManager(store, clock=StoreClock(await store.now()))


def within(manager: JobManager, caller: Caller) -> JobManager:
    return manager.on(caller.connection)


@pytest.mark.parametrize("commit", [True, False])
async def test_jobs_share_the_fate_of_the_transaction(
    manager: JobManager, caller: Caller, commit: bool
) -> None:
    """Everything of them: rows, keys, tags, dependencies and events."""
    await caller.run("CREATE TEMP TABLE orders (number integer)")
    await caller.run("INSERT INTO orders VALUES (1)")
    inside = within(manager, caller)
    submitted = await inside.submit_many(
        [
            JobSpec(type="first", id="a", payload={"n": 1}, key="k", tags=["t"], limit_key="c1"),
            JobSpec(type="then", id="b", after=["a"], delay_seconds=0.5),
        ]
    )
    assert [job.state for job in submitted.jobs] == [State.PENDING, State.BLOCKED]
    assert await inside.get("a") == submitted.jobs[0]  # the caller sees its own
    assert (await manager.stats()).total == 0  # nobody else does
    assert await manager.claim("w") == ()

    await caller.end(commit=commit)
    if commit:
        assert await manager.get("a") == submitted.jobs[0]
        (claimed,) = await manager.claim("w", tags=["t"])
        assert claimed.limit_key == "c1"
        await manager.complete(claimed.id, claimed.token)
        assert (await manager.get("b")).state is State.PENDING
        assert [event.kind for event in await manager.events(job_id="a")] == [
            "enqueued",
            "leased",
            "completed",
        ]
    else:
        assert (await manager.stats()).total == 0
        assert (await manager.submit(JobSpec(type="first", key="k"))).created == (True,)
        assert len(await manager.events()) == 1


async def test_a_refused_job_does_not_spoil_the_transaction(
    manager: JobManager, caller: Caller
) -> None:
    await manager.submit(JobSpec(type="x", id="taken"))
    await caller.run("CREATE TEMP TABLE orders (number integer)")
    inside = within(manager, caller)
    with pytest.raises(DuplicateJob):
        await inside.submit(JobSpec(type="x", id="taken"))
    await inside.submit(JobSpec(type="x", id="free"))
    await caller.end(commit=True)
    assert (await manager.get("free")).state is State.PENDING
    await insert(manager.store, draft())
    assert (await manager.stats()).total == 3


async def test_a_held_key_gives_the_job_that_holds_it(manager: JobManager, caller: Caller) -> None:
    first = (await manager.submit(JobSpec(type="x", key="k"))).job
    inside = within(manager, caller)
    again = await inside.submit(JobSpec(type="x", key="k"))
    assert again.created == (False,)
    assert again.job == first
    await caller.end(commit=True)


async def test_a_child_of_a_failed_job_falls_inside_the_transaction(
    manager: JobManager, caller: Caller
) -> None:
    await manager.submit(JobSpec(type="x", id="parent"))
    await manager.cancel(["parent"])
    inside = within(manager, caller)
    child = (await inside.submit(JobSpec(type="x", after=["parent"]))).job
    assert child.state is State.CANCELLED
    await caller.end(commit=False)
    assert (await manager.stats()).total == 1


async def test_without_a_transaction_nothing_is_written(
    manager: JobManager, postgres_url: str
) -> None:
    connection = await asyncpg.connect(without_schema(postgres_url))
    assert isinstance(manager.store, PostgresStore)
    inside = JobManager(manager.store.on(connection), clock=manager.clock)
    with pytest.raises(StoreError, match="in no transaction"):
        await inside.submit(JobSpec(type="x"))
    await connection.close()
    assert (await manager.stats()).total == 0


async def test_other_things_are_not_connections(store: PostgresStore) -> None:
    inside = JobManager(
        store.on(object()), clock=StoreClock(await store.now()), policies=Policies(default=Policy())
    )
    with pytest.raises(InvalidInput, match="not a connection"):
        await inside.submit(JobSpec(type="x"))


async def test_other_stores_say_that_they_cannot() -> None:
    async with await connect("memory:") as manager:
        with pytest.raises(InvalidInput, match="memory"):
            manager.on(object())
