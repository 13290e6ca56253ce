"""What a thousand jobs cost a store, counted and never timed: round trips, statements, and rows looked at.

A limit is a little above what was counted when it was set. Whoever makes it cheaper lowers it; whoever has to
raise it says why.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import asyncpg
import pytest
import redis.asyncio

from headrace import JobSpec, connect
from headrace.clock import ManualClock
from headrace.manager import Completed, JobManager
from headrace.stores.postgres import wait
from tests.stores.postgres.server import Schemas, with_options
from tests.stores.proxy import Proxy
from tests.stores.redis import server as redis_server

JOBS = 1000
BATCH = 100


class Cost(NamedTuple):
    trips: int
    """How often a request was sent and an answer waited for; of SQLite, how often it was committed."""
    statements: int


class Counting(Proxy):
    """Counts what clients ask of a server that they reach through it."""

    def __init__(self, target: str, statements: Callable[[bytes], int]) -> None:
        super().__init__(target)
        self._statements = statements
        self._asked: dict[int, bytearray] = {}
        self._answered: set[int] = set()
        self._trips = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._asked[id(writer)] = bytearray()
        await super()._serve(reader, writer)

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, answers: bool
    ) -> None:
        connection = id(source) if not answers else id(sink)
        while data := await source.read(65536):
            if answers:
                self._open = False
            else:
                self._asked.setdefault(connection, bytearray()).extend(data)
                if not self._open:
                    self._trips += 1
                self._open = True
            sink.write(data)
            await sink.drain()
        sink.close()

    _open = False
    """A request is on its way. One client at a time asks for one thing at a time here."""

    def reset(self) -> None:
        self._asked, self._trips = {}, 0

    def cost(self) -> Cost:
        return Cost(self._trips, sum(map(self._statements, map(bytes, self._asked.values()))))


def postgres_statements(asked: bytes) -> int:
    """Executions in a client's part of the protocol: of prepared statements, and simple queries."""
    found, at = 0, 0
    while at < len(asked):
        if not asked[at]:  # the first messages of a connection have no letter
            at += int.from_bytes(asked[at : at + 4])
            continue
        found += asked[at : at + 1] in (b"E", b"Q")
        at += 1 + int.from_bytes(asked[at + 1 : at + 5])
    return found


def redis_commands(asked: bytes) -> int:
    """Commands in a client's part of the protocol: arrays of strings, each with its length."""
    found, at = 0, 0
    while at < len(asked):
        end = asked.index(b"\r\n", at)
        count, at = int(asked[at + 1 : end]), end + 2
        found += 1
        for _ in range(count):
            end = asked.index(b"\r\n", at)
            at = end + 2 + int(asked[at + 1 : end]) + 2
    return found


class Traced:
    """Counts what is executed on every connection to a file, and the steps of SQLite's machine."""

    STEPS = 100

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.statements: Counter[str] = Counter()
        self.steps = 0
        opened = sqlite3.connect

        def traced(*args: Any, **kwargs: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = opened(*args, **kwargs)
            connection.set_trace_callback(self._executed)
            connection.set_progress_handler(self._stepped, self.STEPS)
            return connection

        monkeypatch.setattr(sqlite3, "connect", traced)

    def _executed(self, statement: str) -> None:
        self.statements[statement.split(None, 1)[0].upper()] += 1

    def _stepped(self) -> int:
        self.steps += self.STEPS
        return 0

    def reset(self) -> None:
        self.statements.clear()
        self.steps = 0

    def cost(self) -> Cost:
        return Cost(self.statements["COMMIT"], self.statements.total())


Counted = Counting | Traced


@contextlib.asynccontextmanager
async def counted(
    store: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[str, Counted]]:
    """The url of an empty store, and what counts."""
    if store == "sqlite":
        yield f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=normal", Traced(monkeypatch)
        return
    if store == "postgresql":
        schemas: Schemas = request.getfixturevalue("postgres_schemas")
        url, statements = schemas.take(unused=True), postgres_statements
        # Hints are debounced by time: after the first one none is due while this counts.
        monkeypatch.setattr(wait, "NOTIFY_PAUSE_SECONDS", 3600.0)
    else:
        url, statements = redis_server.fresh_url(), redis_commands
    proxy = Counting(url, statements)
    await proxy.start()
    try:
        if store == "postgresql":
            here = with_options(url, host="127.0.0.1", port=str(proxy.port), sslmode="disable")
        else:
            here = url.replace(urlsplit(url).netloc, f"127.0.0.1:{proxy.port}")
        yield here, proxy
    finally:
        await proxy.stop()


async def settle(manager: JobManager, jobs: Sequence[Any]) -> None:
    settled = await manager.settle(
        [Completed(job_id=job.id, token=job.token, known=job) for job in jobs]
    )
    assert all(not isinstance(outcome, Exception) for outcome in settled.outcomes)


async def costs(url: str, counter: Counted) -> Mapping[str, Cost]:
    found = {}

    def counted(name: str) -> None:
        found[name] = counter.cost()
        counter.reset()

    # A clock that stands still: nothing is read again because it has grown old.
    async with await connect(url, clock=ManualClock()) as manager:
        await manager.submit_many([JobSpec(type="t", payload=n) for n in range(BATCH)])
        await manager.submit(JobSpec(type="t"))
        await settle(manager, await manager.claim("w", limit=BATCH))
        await settle(manager, await manager.claim("w", limit=BATCH))
        counter.reset()
        for n in range(10):
            await manager.submit(JobSpec(type="t", payload=n))
        counted("submit ten, one by one")
        await manager.submit_many([JobSpec(type="t", payload=n) for n in range(JOBS)])
        counted("submit a thousand")
        claims = [await manager.claim("w", limit=BATCH) for _ in range(JOBS // BATCH)]
        assert sum(map(len, claims)) == JOBS
        counted("claim a thousand")
        for jobs in claims:
            await settle(manager, jobs)
        counted("settle a thousand")
    return found


SUBMIT_TEN, SUBMIT, CLAIM, SETTLE = (
    *("submit ten, one by one", "submit a thousand"),
    *("claim a thousand", "settle a thousand"),
)
LIMITS: Mapping[str, Mapping[str, Cost]] = {
    "sqlite": {
        SUBMIT_TEN: Cost(10, 65),
        SUBMIT: Cost(1, 60),
        CLAIM: Cost(10, 170),
        SETTLE: Cost(10, 150),
    },
    "postgresql": {
        SUBMIT_TEN: Cost(10, 10),
        SUBMIT: Cost(3, 3),
        CLAIM: Cost(10, 10),
        SETTLE: Cost(10, 10),
    },
    "redis": {
        SUBMIT_TEN: Cost(10, 10),
        SUBMIT: Cost(1, 1),
        CLAIM: Cost(10, 10),
        SETTLE: Cost(10, 10),
    },
}
DURABLE = list(LIMITS)


@pytest.mark.parametrize("store", DURABLE)
async def test_a_thousand_jobs_cost_no_more_than_this(
    store: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with counted(store, tmp_path, request, monkeypatch) as (url, counter):
        found = await costs(url, counter)
    for name, most in LIMITS[store].items():
        assert found[name].trips <= most.trips, (name, found)
        assert found[name].statements <= most.statements, (name, found)
        assert found[name].trips, "a count of nothing says nothing"


CLAIMS = 5
CLAIMED = 20
LOOKED_AT: Mapping[str, int] = {"sqlite": 400, "postgresql": 4, "redis": 4}
"""For one job of a claim of twenty: steps of SQLite's machine, rows and index entries of PostgreSQL, commands
of Redis."""


@pytest.mark.parametrize("store", DURABLE)
async def test_a_claim_looks_at_no_more_for_a_longer_line(
    store: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for waiting in (300, 3000):
        folder = tmp_path / str(waiting)
        folder.mkdir()
        async with counted(store, folder, request, monkeypatch) as (url, counter):
            async with await connect(url, clock=ManualClock()) as manager:
                for priority in (1, 3):  # those in front are not due yet
                    specs = [
                        JobSpec(type="t", priority=priority, delay_seconds=900 * (priority == 1))
                    ]
                    await manager.submit_many(specs * waiting)
                await manager.claim("w", limit=CLAIMED)
            before = await looked_at(url, counter, request)
            async with await connect(url, clock=ManualClock()) as manager:
                for _ in range(CLAIMS):
                    assert len(await manager.claim("w", limit=CLAIMED)) == CLAIMED
            after = await looked_at(url, counter, request)
            found.append((after - before) / CLAIMS / CLAIMED)
    short, long = found
    assert 0 < long <= LOOKED_AT[store], found
    assert long <= 1.2 * short + 1, found


async def looked_at(url: str, counter: Counted, request: pytest.FixtureRequest) -> int:
    """How much has been looked at on this store so far. All connections to it are closed."""
    if isinstance(counter, Traced):
        return counter.steps
    match urlsplit(url).scheme:
        case "redis":
            client = redis.asyncio.Redis.from_url(url.partition("?")[0])
            calls = await client.info("commandstats")
            await client.aclose()
            return sum(
                one["calls"]
                for name, one in calls.items()
                if not name.startswith(("cmdstat_info", "cmdstat_client", "cmdstat_config"))
            )
        case _:
            schemas: Schemas = request.getfixturevalue("postgres_schemas")
            connection = await asyncpg.connect(schemas.url)
            schema = dict(parse_qsl(urlsplit(url).query))["schema"]
            # A connection that ends hands in what it has counted; it may take a moment.
            seen = -1
            while True:
                rows = await connection.fetchval(
                    "SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint"
                    " FROM pg_stat_user_tables WHERE schemaname = $1",
                    schema,
                )
                if rows == seen:
                    await connection.close()
                    return int(rows)
                seen = rows
                await asyncio.sleep(0.2)
