"""Dependencies: when a job may go, what takes it down, how much it costs, and what a crash leaves."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterator
from unittest import mock

from headrace import errors, lifecycle
from headrace.errors import PermanentError
from headrace.manager import JobManager
from headrace.model import Dependency, DependencyKind, Priority, State, new_id
from headrace.policy import CancelMode, Policy
from headrace.spec import JobSpec
from headrace.stores.base import Clash, Commit, Inserted, Insertion
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import (
    finish,
    states,
    submit,
    suite,
    take,
    unchanged,
)

BLOCKED, PENDING = State.BLOCKED, State.PENDING


def after_any(*job_ids: str) -> list[Dependency]:
    return [Dependency(job_id, DependencyKind.AFTER_ANY) for job_id in job_ids]


async def end(manager: JobManager, job_id: str, how: State) -> None:
    """End a waiting job in this way."""
    if how is State.CANCELLED:
        await manager.cancel([job_id])
        return
    _, token = await take(manager, job_id)
    await end_held(manager, job_id, token, how)


async def end_held(manager: JobManager, job_id: str, token: str | None, how: State) -> None:
    """End a claimed job in this way."""
    match how:
        case State.COMPLETED:
            await manager.complete(job_id, token)
        case State.FAILED:
            await manager.fail(job_id, token, PermanentError("no"))
        case State.DEAD:
            await manager.fail(job_id, token, "no")
        case State.CANCELLED:
            await manager.cancel([job_id], mode=CancelMode.IMMEDIATE)
        case State.ABANDONED:
            await manager.abandon(job_id)
        case _:
            raise AssertionError(how)


@suite.case("AFTER", "waits until every parent has completed, then may be claimed")
async def after(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "p1")
    await submit(manager, "p2")
    child = await submit(manager, "c", after=["p1", "p2"])
    assert (child.state, child.depth) == (BLOCKED, 1)
    await finish(manager, "p1")
    assert (await manager.get("c")).state is BLOCKED
    await finish(manager, "p2")
    assert (await manager.get("c")).state is PENDING
    await take(manager, "c")
    kinds = [event.kind for event in await manager.events(job_id="c")]
    assert kinds == ["enqueued", "unblocked", "leased"]


@suite.case("AFTER", "parents that have completed already do not hold a job up")
async def parents_done(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "p")
    await finish(manager, "p")
    assert (await submit(manager, "c", after=["p"])).state is PENDING


@suite.case("AFTER_ANY", "the first parent to end, in whatever way, lets the job go")
async def any_of(env: Env) -> None:
    manager = await env.manager(Policy(max_attempts=1))
    for how in (State.COMPLETED, State.FAILED, State.DEAD, State.CANCELLED, State.ABANDONED):
        names = [f"{how}-p1", f"{how}-p2"]
        for name in names:
            await submit(manager, name)
        child = await submit(manager, f"{how}-c", after=after_any(*names))
        assert child.state is BLOCKED
        await end(manager, names[1], how)
        assert (await manager.get(child.id)).state is PENDING
        await manager.reset_running()
        await end(manager, child.id, State.COMPLETED)
        await manager.cancel(names, mode=CancelMode.IMMEDIATE)
        assert (await manager.get(child.id)).state is State.COMPLETED
        assert await manager.sweep() == 0


@suite.case("mixed kinds", "needs every AFTER parent and one AFTER_ANY parent")
async def mixed(env: Env) -> None:
    manager = await env.manager()
    for name in ("need", "any1", "any2"):
        await submit(manager, name)
    await submit(manager, "c", after=["need", *after_any("any1", "any2")])
    await finish(manager, "need")
    assert (await manager.get("c")).state is BLOCKED
    await finish(manager, "any2")
    assert (await manager.get("c")).state is PENDING


@suite.case(
    "propagation", "failed, dead, cancelled (and abandoned as cancelled), down the whole chain"
)
async def propagation(env: Env) -> None:
    manager = await env.manager(Policy(max_attempts=1))
    for how, target in (
        (State.FAILED, State.FAILED),
        (State.DEAD, State.DEAD),
        (State.CANCELLED, State.CANCELLED),
        (State.ABANDONED, State.CANCELLED),
    ):
        names = [f"{how}{n}" for n in range(4)]
        await manager.submit_many(
            [
                JobSpec(type="t", id=name, after=[names[n - 1]] if n else [])
                for n, name in enumerate(names)
            ]
        )
        await end(manager, names[0], how)
        assert await states(manager, names) == [how, target, target, target]
        last = await manager.get(names[-1])
        assert last.finalized_at == env.clock.now()
        assert last.failure is not None
        assert last.failure.code == "dependency"
    assert await manager.sweep() == 0


@suite.case("propagation", "a job submitted after its parent ended badly ends with it")
async def late_child(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "p")
    await manager.cancel(["p"])
    child = await submit(manager, "c", after=["p"])
    assert child.state is State.CANCELLED
    grand = await submit(manager, "g", after=["c"])
    assert grand.state is State.CANCELLED


@suite.case("CHAIN", "one after the other; a failure stops the rest")
async def chain(env: Env) -> None:
    manager = await env.manager()
    specs = [
        JobSpec(
            type="t",
            id=f"j{n}",
            after=[Dependency(f"j{n - 1}", DependencyKind.CHAIN)] if n else [],
        )
        for n in range(4)
    ]
    await manager.submit_many(specs)
    for n in range(2):
        (job,) = await manager.claim("w", limit=9)
        assert job.id == f"j{n}"
        await manager.complete(job.id, job.token)
    (job,) = await manager.claim("w", limit=9)
    await manager.fail(job.id, job.token, PermanentError("no"))
    assert (await manager.get("j3")).state is State.FAILED


@suite.case("FAN_OUT and FAN_IN", "a join waits for its parent and all that the parent spawned")
async def fan(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "mother")
    join = await submit(manager, "join", after=[Dependency("mother", DependencyKind.FAN_IN)])
    assert join.state is BLOCKED
    _, token = await take(manager, "mother")
    await manager.spawn("mother", token, [JobSpec(type="t", id=f"c{n}") for n in range(3)])
    await manager.complete("mother", token)
    assert (await manager.get("join")).state is BLOCKED
    await finish(manager, "c0", "c1")
    assert (await manager.get("join")).state is BLOCKED
    await finish(manager, "c2")
    assert (await manager.get("join")).state is PENDING


@suite.case(
    "FAN_OUT and FAN_IN", "a join submitted after the spawning waits for what was spawned, too"
)
async def fan_late(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "mother")
    _, token = await take(manager, "mother")
    await manager.spawn("mother", token, [JobSpec(type="t", id="c0"), JobSpec(type="t", id="c1")])
    join = Dependency("mother", DependencyKind.FAN_IN)
    await manager.spawn("mother", token, [JobSpec(type="t", id="join", after=[join])])
    await manager.complete("mother", token)
    await finish(manager, "c0")
    assert (await submit(manager, "later", after=[join])).state is BLOCKED
    assert (await manager.get("join")).state is BLOCKED
    await finish(manager, "c1")
    assert await states(manager, ["join", "later"]) == [PENDING, BLOCKED]
    await finish(manager, "join")
    assert (await manager.get("later")).state is PENDING


@suite.case("FAN_OUT and FAN_IN", "a spawned job that fails takes the join with it")
async def fan_fails(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "mother")
    await submit(manager, "join", after=[Dependency("mother", DependencyKind.FAN_IN)])
    _, token = await take(manager, "mother")
    await manager.spawn("mother", token, [JobSpec(type="t", id="c")])
    await manager.complete("mother", token)
    _, token = await take(manager, "c")
    await manager.fail("c", token, PermanentError("no"))
    assert (await manager.get("join")).state is State.FAILED


@suite.case(
    "constraints", "depth 100 is fine and 101 is refused; width 1000 is fine and 1001 refused"
)
async def bounds(env: Env) -> None:
    manager = await env.manager()
    chain = [JobSpec(type="t", id=f"d{n}", after=[f"d{n - 1}"] if n else []) for n in range(101)]
    deepest = (await manager.submit_many(chain)).jobs[-1]
    assert deepest.depth == 100
    before = await unchanged(manager)
    with raises(errors.InvalidDependency):
        await submit(manager, "too deep", after=["d100"])
    wide = [JobSpec(type="t", id=f"w{n}") for n in range(1001)]
    with raises(errors.InvalidBatch, errors.InvalidDependency):
        names = [spec.id for spec in wide if spec.id]
        await manager.submit_many([*wide, JobSpec(type="t", id="x", after=names)])
    assert await unchanged(manager) == before


@suite.case("priority inheritance", "a dependent job is as urgent as its most urgent dependency")
async def priorities(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "low", priority=Priority.LOW)
    await submit(manager, "high", priority=Priority.HIGH)
    assert (await submit(manager, "c1", after=["low", "high"])).priority == Priority.HIGH
    assert (await submit(manager, "c2", after=["low"])).priority == Priority.NORMAL
    critical = await submit(manager, "c3", after=["low"], priority=Priority.CRITICAL)
    assert critical.priority == Priority.CRITICAL


@suite.case("cost", "releasing 1000 children and joining 1000 parents is linear in total")
async def cost(env: Env) -> None:
    manager = await env.manager()

    async def seconds(width: int) -> float:
        """One parent, `width` children, one join."""
        key = new_id()
        names = [f"{key}-c{n}" for n in range(width)]
        await manager.submit_many(
            [
                JobSpec(type="t", id=f"{key}-p"),
                *(JobSpec(type="t", id=name, after=[f"{key}-p"]) for name in names),
                JobSpec(type="t", id=f"{key}-join", after=names),
            ]
        )
        start = time.perf_counter()
        await finish(manager, f"{key}-p")
        claimed = await manager.claim("w", limit=10_000)
        assert len(claimed) == width
        for job in claimed:
            await manager.complete(job.id, job.token)
        spent = time.perf_counter() - start
        assert (await manager.get(f"{key}-join")).state is PENDING
        await finish(manager, f"{key}-join")
        return spent

    await seconds(20)
    # The best of several: what a busy machine adds is not the cost of a join.
    small = min([await seconds(100) for _ in range(3)])
    large = min([await seconds(1000) for _ in range(2)])
    assert large < small * 10 * 5, (small, large)


@suite.case(
    "sweep", "a crash after a parent's end leaves nothing stuck: one sweep releases the child"
)
async def crash(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "p1")
    await submit(manager, "p2")
    await submit(manager, "child", after=["p1", "p2"])
    await submit(manager, "grandchild", after=["child"])
    rows = await manager.claim("w", limit=2)
    now = env.clock.now()
    for row, command in (
        (rows[0], lifecycle.Complete(token=rows[0].token)),
        (rows[1], lifecycle.Fail(token=rows[1].token, retry=False)),
    ):
        # The commit alone, as if the process died before it could judge the children.
        await manager.store.commit(Commit(changes=[lifecycle.apply(row, command, now)]))
    assert await states(manager, ["child", "grandchild"]) == [BLOCKED, BLOCKED]
    assert await manager.sweep() == 2
    assert await states(manager, ["child", "grandchild"]) == [State.FAILED, State.FAILED]
    assert await manager.sweep() == 0


@suite.case("sweep", "parents that end at the same time release a join once")
async def together(env: Env) -> None:
    manager = await env.manager()
    names = [f"p{n}" for n in range(20)]
    await manager.submit_many([JobSpec(type="t", id=name) for name in names])
    await submit(manager, "join", after=names)
    rows = await manager.claim("w", limit=20)
    await asyncio.gather(*(manager.complete(row.id, row.token) for row in rows))
    assert (await manager.get("join")).state is PENDING
    assert [event.kind for event in await manager.events(job_id="join")] == [
        "enqueued",
        "unblocked",
    ]


@suite.case("race", "a child submitted while its parent ends is never stuck")
async def submit_race(env: Env) -> None:
    manager = await env.manager()
    for n in range(25):
        await submit(manager, f"p{n}")
        _, token = await take(manager, f"p{n}")
        await asyncio.gather(
            manager.complete(f"p{n}", token), submit(manager, f"c{n}", after=[f"p{n}"])
        )
        assert (await manager.get(f"c{n}")).state is PENDING
        await finish(manager, f"c{n}")


@suite.case("parents", "may be deleted once they have ended, without harm to who waits")
async def deleted_parent(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "p1")
    await submit(manager, "p2")
    await submit(manager, "c", after=["p1", "p2"])
    await finish(manager, "p1")
    await manager.delete(["p1"])
    await finish(manager, "p2")
    assert (await manager.get("c")).state is PENDING


@suite.case("FAN_OUT and FAN_IN", "what is spawned while a join is being stored is joined, too")
async def fan_race(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "mother")
    _, token = await take(manager, "mother")
    insert = manager.store.insert
    spawned = False

    async def spawn_first(insertion: Insertion) -> Inserted | Clash:
        nonlocal spawned
        if not spawned:
            spawned = True
            await manager.spawn("mother", token, [JobSpec(type="t", id="c")])
        return await insert(insertion)

    with mock.patch.object(manager.store, "insert", spawn_first):
        await submit(manager, "join", after=[Dependency("mother", DependencyKind.FAN_IN)])
    await manager.complete("mother", token)
    assert (await manager.get("join")).state is BLOCKED
    await finish(manager, "c")
    assert (await manager.get("join")).state is PENDING


@suite.case(
    "FAN_OUT and FAN_IN", "a spawned job that would wait for the join that waits for it is refused"
)
async def fan_circle(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "mother")
    await submit(manager, "join", after=[Dependency("mother", DependencyKind.FAN_IN)])
    await submit(manager, "behind", after=["join"])
    _, token = await take(manager, "mother")
    before = await unchanged(manager)
    for parent in ("join", "behind"):
        with raises(errors.DependencyCycle):
            await manager.spawn("mother", token, [JobSpec(type="t", id="c", after=[parent])])
    assert await unchanged(manager) == before


@suite.case("dependencies", "of two dependencies on one job the stricter counts")
async def stricter(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "p")
    both = [*after_any("p"), Dependency("p")]
    await submit(manager, "c1", after=both)
    await submit(manager, "c2", after=both[::-1])
    await manager.cancel(["p"])
    assert await states(manager, ["c1", "c2"]) == [State.CANCELLED, State.CANCELLED]


@suite.case(
    "ripple", "a store that fails after a commit does not make the committed change look failed"
)
async def failing_ripple(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "p")
    await submit(manager, "c", after=["p"])
    _, token = await take(manager, "p")

    async def broken(_: object) -> None:
        raise errors.StoreUnavailable("gone for a moment; nothing was written")

    with mock.patch.object(manager.store, "joins", broken), quiet():
        done = await manager.complete("p", token)
    assert done.job.state is State.COMPLETED
    assert await states(manager, ["p", "c"]) == [State.COMPLETED, BLOCKED]
    assert await manager.sweep() == 1
    assert (await manager.get("c")).state is PENDING


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """The warning that children are left to the sweep is expected here."""
    logger = logging.getLogger("headrace.manager")
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = False
