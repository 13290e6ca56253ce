"""get, find, count and close."""

from __future__ import annotations

from typing import Any

from headrace.errors import StoreClosed
from headrace.lifecycle import Cancel, Complete, Fail
from headrace.model import Category, Failure, Job, State
from headrace.policy import CancelMode
from headrace.stores.base import GATE, EventQuery, JobStore, Query, Record, Rewrite, Tally
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.store.suite import (
    T0,
    at,
    claim,
    commit,
    insert,
    insertion,
    job,
    opened,
    request,
    share,
    stored,
    suite,
)

FAILING = Fail(token=None, failure=Failure("no", Category.TEMPORARY), retry_at=at(1000))


async def _mixed(env: Env) -> tuple[JobStore, dict[str, Job]]:
    """A store with jobs of many kinds."""
    store = await opened(env)
    await insert(
        store,
        job("done", queue="q1", type="t1", tags=("x",), created_at=at(0)),
        job("failing", queue="q1", type="t2", tags=("x", "y"), created_at=at(1)),
        job("cancelled", queue="q2", type="t1", created_at=at(2)),
        job("running", queue="q2", type="t2", tags=("y",), created_at=at(3), tenant="other"),
    )
    rows = {row.id: row for row in await claim(store, "w1", limit=9)}
    await commit(store, [rows["done"]], Complete(token=None), now=at(10))
    await commit(store, [rows["failing"]], FAILING, now=at(11))
    await commit(store, [rows["cancelled"]], Cancel(mode=CancelMode.IMMEDIATE), now=at(12))
    await insert(
        store,
        job("later", queue="q1", type="t1", tags=("x",), run_at=at(500), created_at=at(4)),
        job("ready", queue="q1", type="t1", created_at=at(5)),
    )
    return store, dict(
        await store.get(["done", "failing", "cancelled", "running", "later", "ready"])
    )


@suite.case("get", "those that exist, by id, and nothing for the others")
async def get(env: Env) -> None:
    store, rows = await _mixed(env)
    assert len(rows) == 6
    assert await store.get([]) == {}
    assert set(await store.get(["done", "nobody", "done"])) == {"done"}


@suite.case("find", "every filter, alone and together")
async def find(env: Env) -> None:
    store, _ = await _mixed(env)

    async def found(**fields: Any) -> list[str]:
        return [row.id for row in await store.find(Query(**fields))]

    assert await found() == ["done", "failing", "cancelled", "running", "later", "ready"]
    assert await found(newest_first=True) == [
        "ready",
        "later",
        "running",
        "cancelled",
        "failing",
        "done",
    ]
    assert await found(tenant="other") == ["running"]
    assert await found(queues=("q1",)) == ["done", "failing", "later", "ready"]
    assert await found(types=("t2", "t9")) == ["failing", "running"]
    assert await found(states=(State.COMPLETED, State.RETRYING)) == ["done", "failing"]
    assert await found(states=()) == []
    assert await found(tags=("x",)) == ["done", "failing", "later"]
    assert await found(tags=("x", "y")) == ["failing"]
    assert await found(assignee="w1", states=(State.RUNNING,)) == ["running"]
    assert await found(assignee="nobody") == []
    assert await found(ids=("ready", "nobody", "done")) == ["done", "ready"]
    assert await found(created_from=at(2), created_before=at(4)) == ["cancelled", "running"]
    assert await found(finalized_before=at(12)) == ["done"]
    assert await found(finalized_before=at(12.000001)) == ["done", "cancelled"]
    assert await found(queues=("q1",), types=("t1",), tags=("x",), states=(State.PENDING,)) == [
        "later"
    ]


@suite.case("find", "pages by seq in both directions, each job once")
async def pages(env: Env) -> None:
    store = await opened(env)
    await insert(store, *(job(f"j{n:02}", tags=("x",) if n % 2 else ()) for n in range(25)))
    for newest_first in (False, True):
        for tags in ((), ("x",)):
            seen: list[str] = []
            after = None
            while True:
                query = Query(newest_first=newest_first, tags=tags, after_seq=after, limit=4)
                page = await store.find(query)
                seen += [row.id for row in page]
                if len(page) < 4:
                    break
                after = page[-1].seq
            wanted = [f"j{n:02}" for n in range(25) if n % 2 or not tags]
            assert seen == (wanted[::-1] if newest_first else wanted)


@suite.case("count", "tallies by tenant, queue and state, with the delayed and the failures")
async def count(env: Env) -> None:
    store, _ = await _mixed(env)

    def tally(queue: str, state: State, *, tenant: str = "default", **more: int) -> Tally:
        return Tally(tenant=tenant, queue=queue, state=state, jobs=more.pop("jobs", 1), **more)

    everything = [
        tally("q1", State.COMPLETED),
        tally("q1", State.PENDING, jobs=2, delayed=1),
        tally("q1", State.RETRYING, delayed=1, failures=1),
        tally("q2", State.CANCELLED),
        tally("q2", State.RUNNING, tenant="other"),
    ]
    assert list(await store.count(at(20))) == everything
    assert list(await store.count(at(20), tenant="other")) == everything[-1:]
    assert list(await store.count(at(20), queues=("q2",))) == everything[-2:]
    assert list(await store.count(at(1000), queues=("q1",)))[1:] == [
        tally("q1", State.PENDING, jobs=2),
        tally("q1", State.RETRYING, failures=1),
    ]


@suite.case("count", "with tags, only of the jobs that have them all")
async def count_tags(env: Env) -> None:
    store, _ = await _mixed(env)
    found = await store.count(at(20), tags=("x",))
    assert [(one.queue, one.state, one.jobs, one.delayed, one.failures) for one in found] == [
        ("q1", State.COMPLETED, 1, 0, 0),
        ("q1", State.PENDING, 1, 1, 0),
        ("q1", State.RETRYING, 1, 1, 1),
    ]
    assert not await store.count(at(20), tags=("x", "z"))
    assert not await store.count(at(20), tags=("x",), tenant="other")
    assert [one.jobs for one in await store.count(at(20), tags=("y",), queues=("q2",))] == [1]


@suite.case("close", "afterwards every verb raises StoreClosed; closing twice is fine")
async def close(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a"))
    await store.close()
    await store.close()
    for verb in (
        store.now,
        lambda: store.insert(insertion(job("b"))),
        lambda: claim(store),
        lambda: store.get(["a"]),
        lambda: store.find(Query()),
        lambda: store.count(T0),
        lambda: store.events(EventQuery()),
        store.tail,
        lambda: store.lapsed(T0, 1),
        store.pauses,
        lambda: store.heads(request()),
        lambda: store.claim_shares(request(), [share(1)], []),
        lambda: store.held(T0, ["default"]),
        store.backlog,
        lambda: store.rewrite([Rewrite(job_id="a", version=1, payload_json=b"1")]),
        lambda: store.records(GATE),
        lambda: store.put_record(Record(kind=GATE, name="default")),
        lambda: store.delete_record(Record(kind=GATE, name="default", version=1)),
    ):
        with raises(StoreClosed):
            await verb()


@suite.case("now", "is aware and close to this host's clock")
async def now(env: Env) -> None:
    store = await opened(env)
    moment = await store.now()
    assert moment.tzinfo is not None
    assert moment > T0
    assert (await store.now()) >= moment


@suite.case("get", "rows read before a change stay as they were read")
async def old_reads(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a"))
    before = await stored(store, "a")
    await claim(store)
    assert before.state is State.PENDING
    assert (await stored(store, "a")).state is State.RUNNING
