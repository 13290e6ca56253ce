"""insert: all of it or none of it, and only if the world is as the insertion took it to be."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from headrace import lifecycle
from headrace.lifecycle import Complete
from headrace.model import Dependency, DependencyKind, Edge, State
from headrace.stores.base import Clash, EventQuery, Fence, Insertion, KeyHold, KeyScope, Kin, Query
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.store.suite import (
    T0,
    at,
    claim,
    commit,
    insert,
    insertion,
    job,
    opened,
    stored,
    suite,
    without_place,
)

SCOPE = KeyScope("default", "default", "t", "k")


@suite.case("insert", "every field of a job comes back as it went in")
async def every_field(env: Env) -> None:
    store = await opened(env)
    whole = job(
        "a",
        tenant="acme",
        queue="mail",
        type="send",
        tags=("a=1", "b", "ünï"),
        payload_json=b'{"x":[1,2.5,null,"\\u00e9"]}',
        priority=0,
        created_at=at(0.000001),
        key="k",
        previous_id="old",
        parent_id="mother",
        correlation_id="trace",
        callback_url="https://example.org/done",
        limit_key="customer 7",
        depth=7,
        max_attempts=5,
        lease_seconds=12.5,
        timeout_seconds=60.25,
        expires_at=at(3600.123456),
        backoff_json=b'{"kind":"none"}',
        run_at=at(5.654321),
        updated_at=at(0.000001),
    )
    (answer,) = await insert(store, whole)
    assert answer == replace(whole, seq=answer.seq)
    assert await stored(store, "a") == answer


@suite.case("insert", "fields that are unset come back unset")
async def bare_job(env: Env) -> None:
    store = await opened(env)
    (answer,) = await insert(store, job("a"))
    assert await stored(store, "a") == replace(job("a"), seq=answer.seq)


@suite.case("insert", "seq grows in the order of the batch and over batches")
async def seq_in_order(env: Env) -> None:
    store = await opened(env)
    first = await insert(store, *(job(f"a{n}") for n in range(20)))
    second = await insert(store, *(job(f"b{n}") for n in range(20)))
    seqs = [row.seq for row in (*first, *second)]
    assert seqs == sorted(set(seqs))
    assert [row.id for row in first] == [f"a{n}" for n in range(20)]


@suite.case("insert", "each job's event is in the log, in order")
async def events_with_jobs(env: Env) -> None:
    store = await opened(env)
    wanted = insertion(job("a", tags=("x",)), job("b"), job("c"))
    await store.insert(wanted)
    log = await store.events(EventQuery())
    assert [without_place(event) for event in log] == list(wanted.events)


@suite.case("insert", "a stored id clashes and nothing of the batch is stored")
async def stored_id(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a"))
    before = await store.tail()
    answer = await store.insert(insertion(job("b"), job("a", type="other")))
    assert isinstance(answer, Clash)
    assert list(answer.ids) == ["a"]
    assert not await store.get(["b"])
    assert (await stored(store, "a")).type == "t"
    assert await store.tail() == before


@suite.case("insert", "an id is unique over tenants")
async def id_over_tenants(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", tenant="one"))
    answer = await store.insert(insertion(job("a", tenant="two")))
    assert isinstance(answer, Clash)
    assert list(answer.ids) == ["a"]


@suite.case("insert", "a held key clashes until it expires")
async def held_key(env: Env) -> None:
    store = await opened(env)
    hold = KeyHold(SCOPE, "a", at(10), released_when_terminal=True)
    await insert(store, job("a", key="k"), keys=[hold])
    again = [KeyHold(SCOPE, "b", at(99), released_when_terminal=True)]
    answer = await store.insert(insertion(job("b", key="k"), keys=again, now=at(9.999999)))
    assert isinstance(answer, Clash)
    assert list(answer.keys) == [SCOPE]
    assert not await store.get(["b"])
    assert await store.keyed([SCOPE], at(9.999999)) == {SCOPE: "a"}
    assert await store.keyed([SCOPE], at(10)) == {}
    await insert(store, job("b", key="k"), keys=again, now=at(10))
    assert await store.keyed([SCOPE], at(11)) == {SCOPE: "b"}


@suite.case("insert", "the end of an earlier holder leaves a key that has passed on alone")
async def key_passed_on(env: Env) -> None:
    store = await opened(env)
    await insert(
        store, job("a", key="k"), keys=[KeyHold(SCOPE, "a", at(10), released_when_terminal=True)]
    )
    await insert(
        store,
        job("b", key="k", run_at=at(500)),
        keys=[KeyHold(SCOPE, "b", at(99), released_when_terminal=True)],
        now=at(10),
    )
    rows = await claim(store, now=at(11))
    assert [row.id for row in rows] == ["a"]
    await commit(store, rows, Complete(token=None), now=at(12))
    assert await store.keyed([SCOPE], at(12)) == {SCOPE: "b"}


@suite.case("insert", "keys differ by tenant, queue, type and key")
async def key_scopes(env: Env) -> None:
    store = await opened(env)
    scopes = [
        SCOPE,
        replace(SCOPE, tenant="x"),
        replace(SCOPE, queue="x"),
        replace(SCOPE, type="x"),
        replace(SCOPE, key="x"),
    ]
    for index, scope in enumerate(scopes):
        row = job(
            f"j{index}", tenant=scope.tenant, queue=scope.queue, type=scope.type, key=scope.key
        )
        hold = KeyHold(scope, row.id, None, released_when_terminal=False)
        await insert(store, row, keys=[hold])
    held = await store.keyed(scopes, at(1e6))
    assert held == {scope: f"j{index}" for index, scope in enumerate(scopes)}


@suite.case("insert", "a parent that has ended since it was read clashes")
async def moved_parent(env: Env) -> None:
    store = await opened(env)
    (parent,) = await insert(store, job("p"))
    await commit(store, await claim(store), Complete(token=None))
    edge = Edge("p", "c", DependencyKind.AFTER)
    answer = await store.insert(insertion(job("c"), waits=True, edges=[edge], parents={"p": None}))
    assert isinstance(answer, Clash)
    assert list(answer.parents) == [parent.id]
    assert not await store.get(["c"])
    ended = replace(edge, outcome=State.COMPLETED, seen=True)
    await insert(store, job("c"), edges=[ended], parents={"p": State.COMPLETED})
    assert list(await store.edges(child_id="c")) == [ended]


@suite.case("insert", "a parent that is gone clashes")
async def gone_parent(env: Env) -> None:
    store = await opened(env)
    edge = Edge("nobody", "c", DependencyKind.AFTER)
    answer = await store.insert(
        insertion(job("c"), waits=True, edges=[edge], parents={"nobody": None})
    )
    assert isinstance(answer, Clash)
    assert list(answer.parents) == ["nobody"]
    assert not await store.get(["c"])


@suite.case("insert", "with a fence, only while that lease holds")
async def fenced(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", lease_seconds=10.0))
    (row,) = await claim(store)
    assert row.token is not None
    fence = Fence("a", row.token)
    await insert(store, job("b"), fence=fence, now=at(9))
    for wrong, now in (
        (fence, at(10)),
        (Fence("a", "other"), at(1)),
        (Fence("nobody", row.token), at(1)),
    ):
        answer = await store.insert(insertion(job("c"), fence=wrong, now=now))
        assert isinstance(answer, Clash), (wrong, now)
        assert answer.fence
    assert [found.id for found in await store.find(Query())] == ["a", "b"]


@suite.case("insert", "with a fence, not past the lifetime or execution timeout of its job")
async def fenced_in_time(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("lifetime", expires_at=at(10)), job("timeout", timeout_seconds=9.0))
    for row in await claim(store, limit=2):
        fence = Fence(row.id, row.token or "")
        await insert(store, job(f"{row.id}-child"), fence=fence, now=at(9))
        answer = await store.insert(insertion(job("late"), fence=fence, now=at(10)))
        assert isinstance(answer, Clash), row.id
        assert answer.fence
    assert not await store.get(["late"])


@suite.case("insert", "clashes when the graph around a job is not as it was read")
async def kin(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("p"), job("q"))
    joined = [Edge("p", "join", DependencyKind.FAN_IN), Edge("q", "join", DependencyKind.AFTER)]
    await insert(store, job("join"), waits=True, edges=joined, parents={"p": None, "q": None})
    await insert(store, job("late"), waits=True, edges=[Edge("p", "late", DependencyKind.AFTER)])
    (row, _) = await claim(store, limit=2)
    fence = Fence("p", row.token or "")
    await insert(store, job("c1", parent_id="p"), job("c2", parent_id="p"), fence=fence)
    asis = {
        "p": Kin(version=2, parents_max=0, joins=["join"], spawned=["c1", "c2"]),
        "join": Kin(version=1, parents_max=2, joins=[], spawned=[]),
        "q": Kin(joins=[], spawned=[]),
        "gone": Kin(parents_max=0, joins=[], spawned=[]),
    }
    stale = {
        "p": [Kin(version=1), Kin(joins=[]), Kin(spawned=["c2", "c3"]), Kin(joins=["late"])],
        "join": [Kin(parents_max=1), Kin(version=2)],
        "gone": [Kin(version=1)],
    }
    for job_id, wrong in stale.items():
        for one in wrong:
            answer = await store.insert(insertion(job("x"), kin=asis | {job_id: one}))
            assert isinstance(answer, Clash), one
            assert list(answer.kin) == [job_id], one
    assert not await store.get(["x"])
    # More than there is, by now, is no harm.
    more = {"p": Kin(joins=["join", "another"], spawned=["c1", "c2", "c3"], parents_max=9)}
    await insert(store, job("x"), kin=asis | more)


@suite.case("insert", "of two at once that rely on each other's kin one clashes")
async def kin_at_once(env: Env) -> None:
    store = await opened(env)
    for number in range(5):
        one, two = f"one{number}", f"two{number}"
        await insert(store, job(one), job(two))

        def crossing(child: str, into: str, relied_on: str) -> Insertion:
            edges = [Edge(child, into, DependencyKind.FAN_IN)]
            kin = {relied_on: Kin(parents_max=0), into: Kin(parents_max=1000)}
            return insertion(job(child), edges=edges, kin=kin)

        answers = await asyncio.gather(
            store.insert(crossing(f"c1-{number}", one, two)),
            store.insert(crossing(f"c2-{number}", two, one)),
        )
        assert sum(isinstance(answer, Clash) for answer in answers) == 1, answers


@suite.case("insert", "a batch of a thousand jobs with tags and keys is stored whole")
async def large_batch(env: Env) -> None:
    store = await opened(env)
    rows = [job(f"j{n}", tags=(f"t{n % 10}", "all"), key=f"k{n}") for n in range(1000)]
    keys = [
        KeyHold(
            KeyScope("default", "default", "t", f"k{n}"), f"j{n}", None, released_when_terminal=True
        )
        for n in range(1000)
    ]
    await insert(store, *rows, keys=keys)
    assert sum(tally.jobs for tally in await store.count(T0, tags=("t3",))) == 100
    assert len(await store.keyed([hold.scope for hold in keys], T0)) == 1000


@suite.case("insert", "an event keeps what the lifecycle wrote of dependencies")
async def event_detail(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("p"))
    child, event = lifecycle.submit(job("c"), [Dependency("p")], waits=True)
    edge = Edge("p", "c", DependencyKind.AFTER)
    await store.insert(
        replace(insertion(), jobs=[child], events=[event], edges=[edge], parents={"p": None})
    )
    log = await store.events(EventQuery(job_id="c"))
    assert [one.detail_json for one in log] == [event.detail_json]
