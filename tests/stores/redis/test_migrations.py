"""Stores of an older schema: brought up to date with all that is in them, or left alone."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from headrace.errors import SchemaTooOld, StoreCorrupt
from headrace.model import CLAIMABLE, Event, Job
from headrace.stores.base import Commit, EventQuery, Query, Record
from headrace.stores.redis import SCHEMA_VERSION, RedisStore, opening
from headrace.stores.redis.connection import Server
from tests.stores.redis.consistency import check
from tests.stores.redis.jobs import completion, draft, insert, request

FILE = Path(__file__).parent / "files" / "version_1.json"


class Snapshot(msgspec.Struct):
    """What a store held, and what the Headrace that wrote it read from it."""

    now: datetime
    commands: list[list[str]]
    jobs: list[Job]
    events: list[Event]


@pytest.fixture(scope="module")
def old() -> Snapshot:
    return read_old()


def read_old() -> Snapshot:
    return msgspec.json.decode(FILE.read_bytes(), type=Snapshot)


@pytest.fixture
async def old_url(redis_url: str, old: Snapshot) -> str:
    """The url of a store of schema 1."""
    await write_old(redis_url, old)
    return redis_url


async def write_old(url: str, old: Snapshot) -> None:
    """Make an empty store one of schema 1."""
    server = _server(url)
    for command, name, *arguments in old.commands:
        key = server.keys.of(b64decode(name).decode())
        await server.write(command, key, *map(b64decode, arguments))
    await server.close()


def _server(url: str) -> Server:
    return Server(opening.parse(url, prefix="headrace", relaxed_durability=True))


async def _keys(url: str) -> dict[str, bytes]:
    """Every key of the store, and what it holds."""
    server = _server(url)
    names = [key.decode() for key in await server.read("KEYS", f"{server.keys.root}:*")]
    dumps = {name: await server.read("DUMP", name) for name in names}
    await server.close()
    return dumps


async def test_an_old_store_is_left_alone_unless_it_may_be_migrated(old_url: str) -> None:
    before = await _keys(old_url)
    with pytest.raises(SchemaTooOld, match=r"has schema 1.*left untouched.*migrate=True") as caught:
        await RedisStore.open(old_url)
    assert caught.value.version == 1
    assert await _keys(old_url) == before


async def test_a_migrated_store_holds_everything(old_url: str, old: Snapshot) -> None:
    store = await RedisStore.open(old_url, migrate=True)
    assert await store.schema_version() == SCHEMA_VERSION
    assert await store.find(Query(limit=1000)) == old.jobs
    assert await store.events(EventQuery(limit=1000)) == old.events
    for job in old.jobs:
        history = await store.events(EventQuery(job_id=job.id))
        assert history == [event for event in old.events if event.job_id == job.id]
    assert [pause.queue for pause in await store.pauses()] == ["held"]
    (worker,) = await store.workers(old.now)
    assert (worker.worker, worker.slots, worker.busy) == ("w3", None, None)
    await check(store)
    assert not [name for name in await _keys(old_url) if ":heads:" in name]
    await store.close()


async def test_a_migrated_store_goes_on(old_url: str, old: Snapshot) -> None:
    store = await RedisStore.open(old_url, migrate=True)
    later = old.now + timedelta(hours=2)
    waiting = [job for job in old.jobs if job.state in CLAIMABLE and job.queue != "held"]
    waiting.sort(key=lambda job: (job.priority, job.run_at, job.seq))
    assert len(waiting) > 5
    claimed = await store.claim(request(100, later))
    assert [job.id for job in claimed] == [job.id for job in waiting]
    committed = await store.commit(Commit(changes=[completion(job, later) for job in claimed]))
    assert all(committed.applied)
    (new,) = await insert(store, draft(limit_key="k", log_json=b"[1]"))
    assert new.seq > max(job.seq for job in old.jobs)
    assert (await store.get([new.id]))[new.id] == new
    events = await store.events(EventQuery(limit=1000))
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert await store.put_record(Record(kind="gate", name="default"))
    assert await store.claim(request(100, later)) == []
    await check(store)
    await store.close()


async def test_many_migrate_at_once_and_it_is_done_once(old_url: str, old: Snapshot) -> None:
    stores = await asyncio.gather(*(RedisStore.open(old_url, migrate=True) for _ in range(5)))
    for store in stores:
        assert await store.find(Query(limit=1000)) == old.jobs
    await check(stores[0])
    after = await _keys(old_url)
    stores.append(await RedisStore.open(old_url, migrate=True))
    assert await _keys(old_url) == after
    for store in stores:
        await store.close()


async def test_a_process_of_the_old_version_cannot_write_any_more(old_url: str) -> None:
    """Each of its insertions, claims and changes takes a number before it writes anything."""
    store = await RedisStore.open(old_url, migrate=True)
    with pytest.raises(StoreCorrupt, match="nothing was written"):
        await store._server.write("HINCRBY", store._server.keys.of("counters"), "events", 1)
    with pytest.raises(StoreCorrupt, match="nothing was written"):
        await store._server.write("HINCRBY", store._server.keys.of("numbers"), "events", 1)
    await store.close()


async def test_jobs_from_before_blocks_are_found_and_new_ones_are_listed(
    old_url: str, old: Snapshot
) -> None:
    store = await RedisStore.open(old_url, migrate=True)
    kind, worker = old.jobs[0].type, next(job.assignee for job in old.jobs if job.assignee)
    wanted = [job.id for job in old.jobs if job.type == kind]
    new = await insert(store, *(draft(type=kind if n == 299 else "new") for n in range(300)))
    assert new[0].seq % 256 == 0
    found = await store.find(Query(types=[kind], limit=1000))
    assert [job.id for job in found] == [*wanted, new[299].id]
    newest = await store.find(Query(types=[kind], limit=1000, newest_first=True))
    assert [job.id for job in newest] == [new[299].id, *reversed(wanted)]
    held = await store.find(Query(assignee=worker, limit=1000))
    assert [job.id for job in held] == [job.id for job in old.jobs if job.assignee == worker]
    await check(store)
    await store.delete({job.id: job.version for job in found})
    await check(store)
    await store.close()


async def test_an_empty_store_of_the_old_version(redis_url: str) -> None:
    server = _server(redis_url)
    await server.write("SET", server.keys.of("schema"), "1")
    await server.close()
    store = await RedisStore.open(redis_url, migrate=True)
    (job,) = await insert(store, draft())
    assert [one.id for one in await store.claim(request())] == [job.id]
    await check(store)
    await store.close()
