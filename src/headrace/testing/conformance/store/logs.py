"""Log lines: notes of a worker that outlive the attempt."""

from __future__ import annotations

from msgspec.structs import replace

from headrace.lifecycle import Cancel, Command, Complete, Expire, Fail
from headrace.model import Category, Failure
from headrace.policy import CancelMode
from headrace.stores.base import Fence, Note, Query
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.store.suite import (
    at,
    claim,
    commit,
    insert,
    job,
    opened,
    stored,
    suite,
)

FAILING = Fail(token=None, failure=Failure("no", Category.TEMPORARY), retry_at=at(3))


@suite.case("log lines", "are written byte for byte, alone or with other notes, without a version")
async def written(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", lease_seconds=10.0), job("b"))
    rows = await claim(store, limit=2)
    cursor = await store.tail()
    fence = Fence("a", rows[0].token or "")
    lines = '[ ["12:00", "ünï ☃"],\n["12:01", "x"] ]'.encode()
    assert await store.annotate(fence, Note(log_json=lines), at(1))
    assert await stored(store, "a") == replace(rows[0], log_json=lines)
    assert await store.annotate(fence, Note(progress=0.5, checkpoint_json=b"1"), at(2))
    assert (await stored(store, "a")).log_json == lines
    more = b"[" + b",".join(b'"%d"' % n for n in range(20_000)) + b"]"
    assert await store.annotate(fence, Note(progress=0.75, log_json=more), at(3))
    wanted = replace(rows[0], log_json=more, progress=0.75, checkpoint_json=b"1")
    assert list(await store.find(Query())) == [wanted, rows[1]]
    assert await store.tail() == cursor


@suite.case("log lines", "are fenced: only while the lease holds, only with its token")
async def fenced(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", lease_seconds=10.0))
    (row,) = await claim(store)
    fence = Fence("a", row.token or "")
    assert await store.annotate(fence, Note(log_json=b"[1]"), at(9.999999))
    late = Note(log_json=b"[2]")
    assert not await store.annotate(fence, late, at(10))
    assert not await store.annotate(Fence("a", "x"), late, at(1))
    await commit(store, [row], Expire(), now=at(11))
    assert not await store.annotate(fence, late, at(1))
    (again,) = await claim(store, "w2", now=at(12), nonce="m")
    assert not await store.annotate(fence, late, at(13))
    assert await stored(store, "a") == again
    assert again.log_json == b"[1]"


@suite.case("log lines", "survive attempts, and changes computed from an older read")
async def survive(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", lease_seconds=10.0))
    (row,) = await claim(store)
    assert row.log_json is None
    endings: list[tuple[Command, float]] = [(FAILING, 2), (Expire(), 15)]
    for number, (command, now) in enumerate(endings, start=1):
        lines = b"[%d]" % number
        assert await store.annotate(Fence("a", row.token or ""), Note(log_json=lines), at(now))
        await commit(store, [row], command, now=at(now))
        assert (await stored(store, "a")).log_json == lines
        (row,) = await claim(store, now=at(now + 5), nonce=f"m{number}")
        assert row.log_json == lines
    assert await store.annotate(Fence("a", row.token or ""), Note(log_json=b"[3]"), at(26))
    await commit(store, [row], Cancel(mode=CancelMode.COOPERATIVE), now=at(27))
    cancelling = await stored(store, "a")
    assert cancelling.log_json == b"[3]"
    await commit(store, [cancelling], Complete(token=None), now=at(28))
    assert (await stored(store, "a")).log_json == b"[3]"


@suite.case("log lines", "go with their job")
async def deleted(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a"))
    (row,) = await claim(store)
    assert await store.annotate(Fence("a", row.token or ""), Note(log_json=b"[1]"), at(1))
    await commit(store, [row], Complete(token=None))
    assert await store.delete({"a": (await stored(store, "a")).version})
    (new,) = await insert(store, job("a"))
    assert new.log_json is None
    assert (await stored(store, "a")).log_json is None
