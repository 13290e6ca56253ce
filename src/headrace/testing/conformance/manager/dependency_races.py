"""Joins, spawns and submissions that meet between the look at the graph and the write."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from unittest import mock

from msgspec.structs import replace

from headrace import errors
from headrace.manager import JobManager
from headrace.model import Dependency, DependencyKind, Priority, State
from headrace.policy import Policy
from headrace.spec import JobSpec
from headrace.stores.base import Clash, Commit, Committed, Inserted, Insertion
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import finish, states, submit, suite, take

BLOCKED, PENDING = State.BLOCKED, State.PENDING


def fan_in(job_id: str) -> Dependency:
    return Dependency(job_id, DependencyKind.FAN_IN)


@contextlib.contextmanager
def before_next_insertion(
    manager: JobManager, meanwhile: Callable[[], Awaitable[object]]
) -> Iterator[None]:
    """The next insertion has been computed when this happens; those after it are as ever."""
    insert = manager.store.insert
    waiting = [meanwhile]

    async def interposed(insertion: Insertion) -> Inserted | Clash:
        while waiting:
            await waiting.pop()()
        return await insert(insertion)

    with mock.patch.object(manager.store, "insert", interposed):
        yield


async def joined_by_all(manager: JobManager, mother: str, token: str, *spawned: str) -> None:
    """The mother and what it spawned end one by one, and only the last of them lets the join go."""
    await manager.complete(mother, token)
    for job_id in spawned:
        assert (await manager.get("join")).state is BLOCKED, job_id
        await finish(manager, job_id)
    assert (await manager.get("join")).state is PENDING


@suite.case("FAN_IN races", "a join stored while its parent's spawn is in flight waits for it")
async def join_during_spawn(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "mother")
    _, token = await take(manager, "mother")
    with before_next_insertion(manager, lambda: submit(manager, "join", after=[fan_in("mother")])):
        await manager.spawn("mother", token, [JobSpec(type="t", id="c")])
    await joined_by_all(manager, "mother", token, "c")


@suite.case(
    "FAN_IN races", "a parent that is claimed and spawns while its join is stored is joined"
)
async def spawn_during_join(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "mother")
    tokens: list[str] = []

    async def run() -> None:
        _, token = await take(manager, "mother")
        await manager.spawn("mother", token, [JobSpec(type="t", id="c")])
        tokens.append(token)

    with before_next_insertion(manager, run):
        await submit(manager, "join", after=[fan_in("mother")])
    await joined_by_all(manager, "mother", tokens[0], "c")


@suite.case("FAN_IN races", "a parent that spawns and ends while its join is stored is joined")
async def ended_during_join(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "mother")

    async def run() -> None:
        _, token = await take(manager, "mother")
        await manager.spawn("mother", token, [JobSpec(type="t", id="c")])
        await manager.complete("mother", token)

    with before_next_insertion(manager, run):
        await submit(manager, "join", after=[fan_in("mother")])
    assert (await manager.get("join")).state is BLOCKED
    await finish(manager, "c")
    assert (await manager.get("join")).state is PENDING


@suite.case("FAN_IN", "a late join waits for what the spawned have spawned, as an early one does")
async def grandchildren(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "mother")
    _, token = await take(manager, "mother")
    await manager.spawn("mother", token, [JobSpec(type="t", id="c")])
    _, child_token = await take(manager, "c")
    await manager.spawn("c", child_token, [JobSpec(type="t", id="g1")])
    await submit(manager, "join", after=[fan_in("mother")])
    await manager.spawn("c", child_token, [JobSpec(type="t", id="g2")])
    await manager.complete("c", child_token)
    await joined_by_all(manager, "mother", token, "g2", "g1")


@suite.case("FAN_IN", "a join that its parent spawns waits for what is spawned with it")
async def spawned_together(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "mother")
    _, token = await take(manager, "mother")
    await manager.spawn(
        "mother",
        token,
        [
            JobSpec(type="t", id="c1"),
            JobSpec(type="t", id="join", after=[fan_in("mother")]),
            JobSpec(type="t", id="c2", after=["c1"]),
            JobSpec(type="t", id="then", after=["join"]),
            JobSpec(type="t", id="last", after=["then"]),
        ],
    )
    await joined_by_all(manager, "mother", token, "c1", "c2")
    for job_id in ("join", "then", "last"):
        await finish(manager, job_id)


@suite.case(
    "FAN_IN races", "of two spawns at once that close a circle through joins one is refused"
)
async def circle(env: Env) -> None:
    manager = await env.manager()
    tokens: dict[str, str] = {}
    for name in ("m1", "m2"):
        await submit(manager, name)
        await submit(manager, f"join-{name}", after=[fan_in(name)])
        _, tokens[name] = await take(manager, name)

    def spawn(mother: str, after: str) -> Awaitable[object]:
        child = JobSpec(type="t", id=f"child-{mother}", after=[after])
        return manager.spawn(mother, tokens[mother], [child])

    with (
        before_next_insertion(manager, lambda: spawn("m2", "join-m1")),
        raises(errors.DependencyCycle),
    ):
        await spawn("m1", "join-m2")
    await manager.complete("m1", tokens["m1"])
    await manager.complete("m2", tokens["m2"])
    await finish(manager, "join-m1")
    await finish(manager, "child-m2")
    assert await states(manager, ["join-m2"]) == [PENDING]


@suite.case("FAN_IN races", "spawns at once under one join do not pass its limit of 1000 parents")
async def width(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "mother")
    await submit(manager, "join", after=[fan_in("mother")])
    _, token = await take(manager, "mother")
    await manager.spawn("mother", token, [JobSpec(type="t", id=f"c{n}") for n in range(998)])
    with (
        before_next_insertion(
            manager, lambda: manager.spawn("mother", token, [JobSpec(type="t", id="last")])
        ),
        raises(errors.InvalidDependency),
    ):
        await manager.spawn("mother", token, [JobSpec(type="t", id="too-many")])
    assert len(await manager.store.edges(child_id="join")) == 1000


@suite.case(
    "priority inheritance", "a late spawn makes its join, and all that waits for that, as urgent"
)
async def urgent_spawn(env: Env) -> None:
    manager = await env.manager()
    low: dict[str, Any] = {"priority": Priority.LOW}
    await submit(manager, "mother", **low)
    await submit(manager, "join", after=[fan_in("mother")], **low)
    await submit(manager, "behind", after=["join"], **low)
    await submit(manager, "last", after=["behind"], priority=Priority.CRITICAL)
    _, token = await take(manager, "mother")
    await manager.spawn("mother", token, [JobSpec(type="t", id="slow", **low)])
    assert await priorities(manager) == [3, 3, 0]
    await manager.spawn("mother", token, [JobSpec(type="t", id="c", priority=Priority.HIGH)])
    assert await priorities(manager) == [1, 1, 0]
    await joined_by_all(manager, "mother", token, "slow", "c")
    (job,) = await manager.claim("w")
    assert (job.id, job.priority) == ("join", Priority.HIGH)


async def priorities(manager: JobManager) -> list[int]:
    return [(await manager.get(name)).priority for name in ("join", "behind", "last")]


async def chained(manager: JobManager, depth: int) -> str:
    """The last job of a chain, which is that deep."""
    chain = [
        JobSpec(type="chain", id=f"d{n}", after=[f"d{n - 1}"] if n else [])
        for n in range(depth + 1)
    ]
    return (await manager.submit_many(chain)).jobs[-1].id


@suite.case("constraints", "a late spawn counts for the depth of its join, and of all below it")
async def deep_spawn(env: Env) -> None:
    manager = await env.manager()
    last = await chained(manager, 97)
    await submit(manager, "mother")
    await submit(manager, "join", after=[fan_in("mother")])
    await submit(manager, "behind", after=["join"])
    _, token = await take(manager, "mother")
    with raises(errors.InvalidDependency):
        deeper = [
            JobSpec(type="t", id="c1", after=[last]),
            JobSpec(type="t", id="c2", after=["c1"]),
        ]
        await manager.spawn("mother", token, deeper)
    assert [(await manager.get(name)).depth for name in ("join", "behind")] == [1, 2]
    with raises(errors.JobNotFound):
        await manager.get("c1")
    await manager.spawn("mother", token, [JobSpec(type="t", id="c", after=[last])])
    assert [(await manager.get(name)).depth for name in ("join", "behind")] == [99, 100]
    with raises(errors.InvalidDependency):
        await submit(manager, "too deep", after=["behind"])
    assert (await submit(manager, "beside", after=["join"])).depth == 100


@suite.case(
    "constraints", "a job stored below a join while that gets deeper is as deep as it should"
)
async def deeper_meanwhile(env: Env) -> None:
    manager = await env.manager()
    last = await chained(manager, 5)
    await submit(manager, "mother")
    await submit(manager, "join", after=[fan_in("mother")])
    _, token = await take(manager, "mother")
    child = JobSpec(type="t", id="c", after=[last], priority=Priority.HIGH)
    with before_next_insertion(manager, lambda: manager.spawn("mother", token, [child])):
        behind = await submit(manager, "behind", after=["join"])
    assert (behind.depth, behind.priority) == (8, Priority.HIGH)


@suite.case("release", "a blocked job that changes while it is judged is judged again")
async def changed_while_judged(env: Env) -> None:
    manager = await env.manager(Policy(max_attempts=1))
    await submit(manager, "p")
    await submit(manager, "c", after=["p"])
    commit = manager.store.commit
    missed = False

    async def miss_once(wanted: Commit) -> Committed:
        nonlocal missed
        if not missed and any(change.before.id == "c" for change in wanted.changes):
            missed = True
            stale = [
                replace(change, before=replace(change.before, version=99))
                for change in wanted.changes
            ]
            return await commit(Commit(changes=stale, seen=wanted.seen))
        return await commit(wanted)

    with mock.patch.object(manager.store, "commit", miss_once):
        await finish(manager, "p")
    assert missed
    assert (await manager.get("c")).state is PENDING


@suite.case("dependencies", "a parent that is made more urgent while its child is stored lifts it")
async def raised_during_submission(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "parent")
    with before_next_insertion(manager, lambda: manager.update("parent", priority=0)):
        await submit(manager, "child", after=["parent"])
    assert (await manager.get("child")).priority == 0
    assert (await manager.get("child")).state is BLOCKED
