"""rewrite: the same contents in another form, without version and event."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace

from headrace.lifecycle import Cancel, Complete, Fail, Release
from headrace.model import Category, Failure, State
from headrace.policy import CancelMode
from headrace.stores.base import Fence, Note, Query, Rewrite
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

FAILING = Fail(token=None, failure=Failure("it broke", Category.TIMEOUT, "E42"), retry_at=at(5))
NOTE = Note(progress=0.5, progress_note="half", checkpoint_json=b"[1]", log_json=b'["one"]')


@suite.case("rewrite", "replaces what is given and leaves every other field as it is")
async def every_field(env: Env) -> None:
    store = await opened(env)
    await insert(
        store, job("a", tags=("x",), payload_json=b'"old"', lease_seconds=10.0, limit_key="k")
    )
    (row,) = await claim(store)
    assert await store.annotate(Fence("a", row.token or ""), NOTE, at(1))
    await commit(store, [await stored(store, "a")], FAILING, now=at(2))
    before = await stored(store, "a")
    assert before.failure is not None
    cursor = await store.tail()
    steps: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"payload_json": b'{ "new": "\xc3\xa9" }'}, {}),
        ({"checkpoint_json": b"[2]"}, {}),
        ({"log_json": b'["two"]'}, {}),
        ({"failure_message": "ünï"}, {"failure": replace(before.failure, message="ünï")}),
        ({"payload_json": b"1", "log_json": b"[]", "checkpoint_json": b"2"}, {}),
        ({}, {}),
    ]
    wanted = before
    for given, seen in steps:
        answers = await store.rewrite([Rewrite(job_id="a", version=before.version, **given)])
        assert list(answers) == [True]
        wanted = replace(wanted, **(seen or given))
        assert await stored(store, "a") == wanted
        assert list(await store.find(Query(tags=("x",)))) == [wanted]
    assert await store.tail() == cursor


@suite.case("rewrite", "a result of a job that has ended, and its failure's message")
async def ended(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("done"), job("failed"))
    rows = {row.id: row for row in await claim(store, limit=2)}
    await commit(store, [rows["done"]], Complete(token=None, result_json=b"1"), now=at(1))
    await commit(store, [rows["failed"]], replace(FAILING, retry=False), now=at(1))
    before = await store.get(["done", "failed"])
    given = [
        Rewrite(job_id="done", version=before["done"].version, result_json=b'"sealed"'),
        Rewrite(job_id="failed", version=before["failed"].version, failure_message="sealed"),
    ]
    assert list(await store.rewrite(given)) == [True, True]
    after = await store.get(["done", "failed"])
    assert after["done"] == replace(before["done"], result_json=b'"sealed"')
    assert after["failed"] == replace(
        before["failed"], failure=Failure("sealed", Category.TIMEOUT, "E42")
    )


@suite.case("rewrite", "a failure's message where there is no failure changes nothing")
async def no_failure(env: Env) -> None:
    store = await opened(env)
    (row,) = await insert(store, job("a"))
    given = Rewrite(job_id="a", version=row.version, failure_message="of nothing")
    assert list(await store.rewrite([given])) == [True]
    assert await stored(store, "a") == row


@suite.case("rewrite", "not of a leased job, another version or an unknown id; one answer each")
async def refused(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("running", payload_json=b"0"), job("cancelling", payload_json=b"0"))
    rows = await claim(store, limit=2)
    await commit(store, [rows[1]], Cancel(mode=CancelMode.COOPERATIVE))
    await insert(store, job("free", payload_json=b"0"), job("stale", payload_json=b"0"))
    await commit(store, await claim(store, limit=1), Release(token=None), now=at(1))
    names = ("running", "cancelling", "free", "stale")
    before = await store.get(names)
    versions = {name: before[name].version for name in names}
    versions |= {"stale": before["stale"].version + 1, "nobody": 1}
    given = [
        Rewrite(job_id=name, version=version, payload_json=b"9", log_json=b"9")
        for name, version in versions.items()
    ]
    assert list(await store.rewrite(given)) == [False, False, True, False, False]
    assert list(await store.rewrite([])) == []
    free = replace(before["free"], payload_json=b"9", log_json=b"9")
    assert await store.get(names) == {**before, "free": free}
    old = Rewrite(job_id="free", version=free.version - 1, payload_json=b"8")
    assert list(await store.rewrite([old])) == [False]
    assert await stored(store, "free") == free


@suite.case("rewrite", "a change computed before it still applies, and keeps what it wrote")
async def no_version(env: Env) -> None:
    store = await opened(env)
    (row,) = await insert(store, job("a", payload_json=b"1"))
    given = Rewrite(job_id="a", version=row.version, payload_json=b"2")
    assert list(await store.rewrite([given, given])) == [True, True]
    answer = await commit(store, [row], Cancel(mode=CancelMode.IMMEDIATE), now=at(1))
    assert list(answer.applied) == [True]
    after = await stored(store, "a")
    assert (after.state, after.payload_json) == (State.CANCELLED, b"2")


@suite.case("rewrite", "what was rewritten is what a claim returns")
async def claimed(env: Env) -> None:
    store = await opened(env)
    await insert(store, *(job(f"j{n}", payload_json=b"%d" % n, run_at=at(n)) for n in range(5)))
    (row,) = await claim(store)
    assert await store.annotate(Fence(row.id, row.token or ""), NOTE, at(0))
    await commit(store, [row], FAILING, now=at(1))
    given = [
        Rewrite(
            job_id=one.id,
            version=one.version,
            payload_json=b'"new %d"' % number,
            checkpoint_json=b'"sealed"',
            log_json=b'"sealed"',
        )
        for number, one in enumerate(await store.find(Query()))
    ]
    assert all(await store.rewrite(given))
    taken = await claim(store, now=at(9), limit=9, nonce="m")
    assert {one.id: one.payload for one in taken} == {f"j{n}": f"new {n}" for n in range(5)}
    assert {(one.checkpoint_json, one.log_json) for one in taken} == {(b'"sealed"', b'"sealed"')}


@suite.case("rewrite", "of a rewrite and a claim at once, both end as if one had come first")
async def against_claims(env: Env) -> None:
    store = await opened(env)
    rows = await insert(store, *(job(f"j{n}", payload_json=b'"old"') for n in range(20)))
    done: dict[str, list[bool]] = {}

    async def rewrite(job_id: str) -> None:
        given = Rewrite(job_id=job_id, version=1, payload_json=b'"new"')
        done[job_id] = list(await store.rewrite([given]))

    await asyncio.gather(
        *(step for row in rows for step in (rewrite(row.id), claim(store, row.id, nonce=row.id)))
    )
    for row in await store.find(Query()):
        assert done[row.id] == [row.payload == "new"]
        late = Rewrite(job_id=row.id, version=row.version, payload_json=b'"late"')
        assert list(await store.rewrite([late])) == [row.state is State.PENDING]
