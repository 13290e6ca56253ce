"""Loading in bulk stores exactly what the manager stores of the same rows, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pyarrow as pa
import pytest
from msgspec.structs import asdict

from headrace import connect
from headrace.model import Job
from headrace.spark.sink import paths
from headrace.spark.sink.bulk import staged_name
from headrace.spark.sink.message import TaskDone
from headrace.spark.sink.rows import BadRow
from headrace.stores.base import EventQuery, Query
from headrace.stores.postgres import opening
from headrace.stores.postgres.bulk import STAGED_PREFIX, Loader
from tests.spark.writing import events_of, halves, jobs_of, payloads, run_task, write, writer
from tests.stores.postgres.server import Schemas

TIMES = frozenset({"created_at", "updated_at", "expires_at", "run_at", "seq"})


@pytest.fixture
def urls(postgres_schemas: Schemas) -> Iterator[tuple[str, str]]:
    """Two empty stores."""
    taken = (postgres_schemas.take(), postgres_schemas.take())
    yield taken
    for url in taken:
        asyncio.run(postgres_schemas.give_back(url))


@pytest.fixture
def url(urls: tuple[str, str]) -> str:
    return urls[0]


def random_rows(dice: random.Random, count: int) -> pa.RecordBatch:
    """Rows of every kind, about a tenth of them bad in one way or another."""

    def pick(*values: Any) -> list[Any]:
        return [dice.choice(values) for _ in range(count)]

    def some(bad: Any, *good: Any) -> list[Any]:
        return [bad if dice.random() < 0.02 else dice.choice(good) for _ in range(count)]

    future = datetime(2040, 1, 1, tzinfo=UTC)
    keys = [f"k{dice.randrange(count)}" for _ in range(count)]
    return pa.record_batch(
        {
            "type": pa.array(some(" ", "a", "b", "ü"), pa.string()),
            "queue": pa.array(some("x" * 129, None, "q", "r"), pa.string()),
            "tenant": pa.array(pick(None, "acme"), pa.string()),
            "priority": pa.array(some("urgent", None, "low", "HIGH", "2"), pa.string()),
            "run_at": pa.array(
                some(
                    datetime(1969, 1, 1, tzinfo=UTC),
                    None,
                    future,
                    future - timedelta(microseconds=1),
                ),
                pa.timestamp("us", tz="UTC"),
            ),
            "tags": pa.array(
                some(["t", None], None, [], ["b", "a", "b"], ["k=v"], ['q"', "ü, {x}"]),
                pa.list_(pa.string()),
            ),
            "key": pa.array(
                [dice.choice((None, None, key, key + "\n", 'ü"' + key)) for key in keys],
                pa.string(),
            ),
            "payload": pa.array(
                some("{", None, '{"a": 1}', '"\\u00e9\\n"', "[1, 2.0, null]", '{"b":"x"}'),
                pa.string(),
            ),
        }
    )


def without_times(job: Job) -> dict[str, Any]:
    row = {name: value for name, value in asdict(job).items() if name not in TIMES}
    lifetime = None if job.expires_at is None else job.expires_at - job.created_at
    delay = None if job.run_at == job.created_at else job.run_at
    return row | {"lifetime": lifetime, "run_at": delay, "updated": job.updated_at - job.created_at}


async def stored(url: str) -> dict[str, Any]:
    """All that is stored, but for what depends on when, and in which order, it was."""
    async with await connect(url) as manager:
        jobs = await manager.store.find(Query(limit=10_000))
        events = await manager.store.events(EventQuery(limit=10_000))
    born = {job.id: job.created_at for job in jobs}
    logged = {}
    for event in events:
        at = born[event.job_id]
        assert event.at == at
        row = {
            name: value
            for name, value in asdict(event).items()
            if name not in {"at", "seq", "cursor", "run_at", "detail_json"}
        }
        detail = event.detail_json or b""
        head, _, tail = detail.partition(b'"expires_at":"')
        logged[event.job_id] = row | {
            "detail": head + tail.partition(b'"')[2],
            "run_at": None if event.run_at == at else event.run_at,
        }
    return {
        "jobs": {job.id: without_times(job) for job in jobs},
        "events": logged,
        "tables": await tables(url, born),
        "order": [job.id for job in jobs] == [event.job_id for event in events],
    }


async def tables(url: str, born: dict[str, datetime]) -> dict[str, Any]:
    """Keys and tags, which the store's verbs do not show whole."""
    to = opening.parse(url, schema="headrace", pool_size=1)
    connection = await asyncpg.connect(to.dsn)
    try:
        keys = await connection.fetch(
            f"SELECT tenant, queue, type, key, job_id, released_when_terminal, expires_at"
            f' FROM "{to.schema}".keys'
        )
        tags = await connection.fetch(
            f'SELECT tag, id FROM "{to.schema}".job_tags INNER JOIN "{to.schema}".bodies USING (seq)'
        )
        ready = await connection.fetch(
            f"SELECT tag, id, jobs.run_at = ready_tags.run_at, jobs.lane = ready_tags.lane,"
            f' jobs.early = ready_tags.early FROM "{to.schema}".ready_tags'
            f' INNER JOIN "{to.schema}".bodies USING (seq) INNER JOIN "{to.schema}".jobs USING (seq)'
        )
        lease = await connection.fetch(
            f'SELECT id, lease_us FROM "{to.schema}".jobs INNER JOIN "{to.schema}".bodies USING (seq)'
        )
    finally:
        await connection.close()
    return {
        # To the minute: the manager draws up its jobs a moment before it holds their keys.
        "keys": {
            (
                *tuple(row)[:-1],
                row["expires_at"]
                and (row["expires_at"] - born[row["job_id"]]) // timedelta(minutes=1),
            )
            for row in keys
        },
        "tags": {tuple(row) for row in tags},
        "ready": {tuple(row) for row in ready},
        "lease": {tuple(row) for row in lease},
    }


def bad(done: list[TaskDone]) -> list[BadRow]:
    return [row for one in done for row in one.kept]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("atomic", ["false", "true"])
def test_rows_become_the_same_jobs_both_ways(
    urls: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Any,
    seed: int,
    atomic: str,
) -> None:
    dice = random.Random(seed)
    parts = [random_rows(dice, 150) for _ in range(2)]
    monkeypatch.syspath_prepend(Path(__file__).parent)
    options = {"bad_rows": "reject", "queue": "d", "priority": "bulk", "atomic": atomic}
    options |= {"app": "loading_app:app"}
    loaded = write(urls[0], *parts, **options, rejects=str(tmp_path / "a"))
    monkeypatch.setattr(paths, "loads_in_bulk", lambda _: False)
    submitted = write(urls[1], *parts, **options, rejects=str(tmp_path / "b"))
    ours, theirs = (asyncio.run(stored(url)) for url in urls)
    assert len(theirs["jobs"]) > 150
    assert theirs["tables"]["keys"]
    assert theirs["tables"]["ready"]
    assert ours.pop("order")
    theirs.pop("order")
    assert ours == theirs
    assert [(row.partition, row.row) for row in bad(loaded)] == [
        (row.partition, row.row) for row in bad(submitted)
    ]
    assert len(bad(loaded)) > 10
    if atomic == "false":
        assert [(one.created, one.repeated) for one in loaded] == [
            (one.created, one.repeated) for one in submitted
        ]


@pytest.mark.parametrize("seed", range(3))
def test_rows_without_keys_and_tags_become_the_same_jobs_straight(
    urls: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Any,
    seed: int,
) -> None:
    """Rows of many groups, some with a due time, some bad; and nothing is looked up."""
    dice = random.Random(seed)
    parts = [random_rows(dice, 150).drop_columns(["key", "tags"]) for _ in range(2)]
    monkeypatch.syspath_prepend(Path(__file__).parent)
    options = {"bad_rows": "reject", "queue": "d", "priority": "bulk", "app": "loading_app:app"}
    with monkeypatch.context() as only:
        only.delattr(Loader, "_load_carefully")
        write(urls[0], *parts, **options, rejects=str(tmp_path / "a"))
    monkeypatch.setattr(paths, "loads_in_bulk", lambda _: False)
    write(urls[1], *parts, **options, rejects=str(tmp_path / "b"))
    ours, theirs = (asyncio.run(stored(url)) for url in urls)
    assert len(theirs["jobs"]) > 200
    assert ours == theirs


def test_a_load_that_meets_stored_rows_stores_the_others_in_order(url: str) -> None:
    rows = payloads(9)
    run_task(writer(url, rows.schema, batch_size="3"), [rows.slice(0, 5)])
    done = run_task(writer(url, rows.schema), [rows])
    assert (done.created, done.repeated) == (4, 5)
    assert [job.payload["n"] for job in jobs_of(url)] == list(range(9))
    assert len(events_of(url)) == 9


async def test_workers_hear_of_loaded_jobs_at_once(url: str) -> None:
    async with await connect(url) as manager:
        after = await manager.tail()
        waiting = asyncio.create_task(manager.store.wait(after, 60))
        await asyncio.to_thread(write, url, payloads(3))
        await asyncio.wait_for(waiting, 30)
        taken = await manager.claim("worker", limit=10)
        assert [job.payload["n"] for job in taken] == [0, 1, 2]


def staged_tables(url: str) -> list[str]:
    to = opening.parse(url, schema="headrace", pool_size=1)

    async def read() -> list[str]:
        connection = await asyncpg.connect(to.dsn)
        try:
            rows = await connection.fetch(
                "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace($1)"
                " AND starts_with(relname, $2)",
                f'"{to.schema}"',
                STAGED_PREFIX,
            )
        finally:
            await connection.close()
        return [row["relname"] for row in rows]

    return asyncio.run(read())


def test_staged_rows_are_gone_after_the_end_whichever_it_is(url: str) -> None:
    rows = payloads(20)
    own = writer(url, rows.schema, atomic="true")
    done = run_task(own, halves(rows))
    assert len(staged_tables(url)) == 1
    own.abort([done, None])
    assert staged_tables(url) == []
    own.commit([run_task(own, [rows])])
    assert staged_tables(url) == []


def test_staged_rows_that_a_crashed_write_left_behind_are_swept_by_the_next(
    url: str,
) -> None:
    rows = payloads(5)
    forgotten = writer(url, rows.schema, atomic="true", write_id="forgotten")
    run_task(forgotten, [rows])
    recent = writer(url, rows.schema, atomic="true", write_id="recent")
    run_task(recent, [rows])
    to = opening.parse(url, schema="headrace", pool_size=1)

    async def age() -> None:
        connection = await asyncpg.connect(to.dsn)
        name = STAGED_PREFIX + staged_name("forgotten")
        old = datetime.now(UTC) - timedelta(days=8)
        await connection.execute(f"COMMENT ON TABLE \"{to.schema}\".{name} IS '{old.isoformat()}'")
        await connection.close()

    before = staged_tables(url)
    assert len(before) == 2
    asyncio.run(age())
    write(url, rows, atomic="true")
    assert staged_tables(url) == [STAGED_PREFIX + staged_name("recent")]


def test_a_rerun_does_not_take_what_a_crashed_run_of_the_same_write_has_staged(url: str) -> None:
    rows = payloads(5)
    crashed = writer(url, rows.schema, atomic="true")
    run_task(crashed, [rows.slice(0, 3)])
    own = writer(url, rows.schema, atomic="true")
    own.commit([run_task(own, [rows])])

    async def read() -> int:
        async with await connect(url) as manager:
            return len(await manager.store.find(Query(limit=100)))

    assert asyncio.run(read()) == 5
