"""due_by: a claim that takes jobs ahead of their time, as far as it says, and in their order."""

from __future__ import annotations

import itertools

from headrace import lifecycle
from headrace.lifecycle import Claim
from headrace.stores.base import EventQuery
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
    request,
    share,
    stored,
    suite,
    without_place,
)

FAR = at(1e9)
_FILTERS: tuple[tuple[str, ...], ...] = ((), ("x",), ("x", "y"))


@suite.case("claim", "with due_by, jobs ahead of their time come in order, whatever filter asks")
async def ahead_of_time(env: Env) -> None:
    for tags in _FILTERS:
        store = await opened(env)
        name = "-".join(tags)
        for number, seconds in enumerate((50, 20, -5, 40, 30, 10)):
            # two types: two lanes to merge
            due = at(seconds)
            await insert(
                store, job(f"{name}{seconds}", type=f"t{number % 2}", run_at=due, tags=tags)
            )
        taken: list[str] = []
        for limit in (1, 2, 3):
            rows = await claim(store, due_by=at(40), tags=tags, limit=limit)
            taken += [row.id for row in rows]
        assert taken == [f"{name}{seconds}" for seconds in (-5, 10, 20, 30, 40)]
        (last,) = await claim(store, due_by=FAR, tags=tags, limit=9)
        assert last.id == f"{name}50"


@suite.case("claim", "with due_by, what is written is what lifecycle.apply says, event included")
async def as_the_lifecycle(env: Env) -> None:
    store = await opened(env)
    rows = await insert(store, job("ahead", run_at=at(60), lease_seconds=10.0), job("due"))
    cursor = await store.tail()
    taken = await claim(store, "w1", now=at(4), due_by=FAR, limit=10, nonce="xyz")
    command = Claim(worker="w1", nonce="xyz", due_by=FAR)
    by_id = {row.id: row for row in rows}
    wanted = [lifecycle.apply(by_id[job_id], command, at(4)) for job_id in ("due", "ahead")]
    assert list(taken) == [change.after for change in wanted]
    assert [await stored(store, row.id) for row in taken] == list(taken)
    log = await store.events(EventQuery(after=cursor))
    assert [without_place(event) for event in log] == [change.event for change in wanted]
    assert [event.wait_us for event in log] == [4_000_000, 0]


@suite.case("claim", "with due_by, jobs stamped ahead by a clock that stepped back are taken")
async def after_a_step_back(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a"), job("b"))
    rows = await claim(store, now=at(600), limit=2)
    failing = lifecycle.Fail(token=None)
    await commit(store, [rows[0]], failing, now=at(602))
    await commit(store, [rows[1]], failing, now=at(601))
    assert not await claim(store, now=T0, limit=9)
    taken = await claim(store, now=T0, due_by=FAR, limit=9)
    assert [row.id for row in taken] == ["b", "a"]
    assert [row.assigned_at for row in taken] == [at(601), at(602)]  # a job's time never runs back


@suite.case("heads", "with due_by, jobs ahead of their time are counted as far as it says")
async def heads_ahead(env: Env) -> None:
    store = await opened(env)
    for tags, due in itertools.product(_FILTERS, (10, 20, 30)):
        await insert(store, job(f"{tags}{due}", run_at=at(due), tags=tags))
    for tags, jobs in zip(_FILTERS, (6, 4, 2), strict=True):
        (found,) = await store.heads(request(due_by=at(20), tags=tags))
        assert (found.jobs, found.run_at) == (jobs, at(10))
    assert not await store.heads(request(due_by=at(9)))


@suite.case("claim_shares", "with due_by, jobs ahead of their time are taken as far as it says")
async def shares_ahead(env: Env) -> None:
    store = await opened(env)
    gates = await gated(store, "default")
    for tags, due in itertools.product(_FILTERS, (30, 10, 20)):
        await insert(store, job(f"{tags}{due}", run_at=at(due), tags=tags))
    taken = await store.claim_shares(request(due_by=at(20), tags=("x", "y")), [share(9)], gates)
    assert taken is not None
    assert [row.run_at for row in taken] == [at(10), at(20)]
    rest = await store.claim_shares(request(due_by=at(20)), [share(9)], [])
    assert rest is not None
    assert [row.run_at for row in rest] == [at(10), at(10), at(20), at(20)]
