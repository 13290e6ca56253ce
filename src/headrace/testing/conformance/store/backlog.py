"""backlog: how many jobs, and how many bytes of payload, have yet to start."""

from __future__ import annotations

from headrace.lifecycle import Cancel, Complete, Expire, Release
from headrace.policy import CancelMode
from headrace.stores.base import Backlog, Pause, Rewrite
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.store.suite import (
    T0,
    at,
    claim,
    commit,
    gated,
    insert,
    job,
    opened,
    stored,
    suite,
)


@suite.case("backlog", "jobs and bytes of payload, by tenant, by queue, by both or in all")
async def filters(env: Env) -> None:
    store = await opened(env)
    assert await store.backlog() == Backlog(0, 0)
    await insert(
        store,
        job("a", tenant="n1", queue="q1", payload_json=b"1"),
        job("b", tenant="n1", queue="q2", payload_json=b"22", limit_key="k", priority=0),
        job("c", tenant="n2", queue="q1", payload_json=b"4444", type="u"),
        job("d", tenant="n2", queue="q1", payload_json='"éé"'.encode()),
    )
    assert await store.backlog() == Backlog(4, 13)
    assert await store.backlog(tenant="n1") == Backlog(2, 3)
    assert await store.backlog(queue="q1") == Backlog(3, 11)
    assert await store.backlog(tenant="n2", queue="q1") == Backlog(2, 10)
    assert await store.backlog(tenant="n2", queue="q2") == Backlog(0, 0)
    assert await store.backlog(tenant="N1") == Backlog(0, 0)


@suite.case("backlog", "blocked and delayed jobs wait too; gates and pauses do not matter")
async def waiting(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("blocked", payload_json=b"10"), waits=True)
    await insert(store, job("later", payload_json=b"200", run_at=at(1e6)), job("now"))
    await gated(store, "default")
    await store.pause(Pause("default", None, T0))
    assert await store.backlog() == Backlog(3, 9)
    assert await store.backlog(queue="default") == Backlog(3, 9)


@suite.case("backlog", "a job leaves when it is claimed and is back when it is lost or released")
async def moving(env: Env) -> None:
    store = await opened(env)
    await insert(store, *(job(f"j{n}", payload_json=b"%d" % 10**n) for n in range(5)))
    rows = await claim(store, limit=4)
    assert await store.backlog() == Backlog(1, 5)
    await commit(store, [rows[0]], Complete(token=None))
    await commit(store, [rows[1]], Cancel(mode=CancelMode.COOPERATIVE))
    assert await store.backlog() == Backlog(1, 5)
    await commit(store, [rows[2]], Release(token=None))
    await commit(store, [rows[3]], Expire())
    assert await store.backlog() == Backlog(3, 12)
    waiting = await stored(store, "j4")
    await commit(store, [waiting], Cancel(mode=CancelMode.IMMEDIATE))
    assert await store.backlog() == Backlog(2, 7)


@suite.case("backlog", "follows deletions and rewritten payloads")
async def rewritten(env: Env) -> None:
    store = await opened(env)
    rows = await insert(store, job("a", payload_json=b"1"), job("b", payload_json=b"22"))
    changed = Rewrite(job_id="a", version=rows[0].version, payload_json=b'"longer"')
    assert list(await store.rewrite([changed])) == [True]
    assert await store.backlog() == Backlog(2, 10)
    assert await store.backlog(tenant="default", queue="default") == Backlog(2, 10)
    assert await store.delete({"a": rows[0].version})
    assert await store.backlog() == Backlog(1, 2)
