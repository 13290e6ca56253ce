"""6. Dependency Types: what each makes a job wait for."""

from __future__ import annotations

from headrace.contracts.job_model import (
    Dependency,
    DependencyType,
    InvalidInput,
    JobRequest,
    JobState,
    PermanentError,
    StaleToken,
)
from headrace.testing.conformance.job_model.suite import (
    claimed,
    open_queue,
    run,
    state,
    states,
    suite,
    token_of,
)
from headrace.testing.conformance.kit import Env, raises

PART = "6. Dependency Types"
T = DependencyType


@suite.case(PART, "there are five, and what a job waits for can be read back")
async def five(env: Env) -> None:
    assert [one.value for one in T] == ["AFTER", "AFTER_ANY", "CHAIN", "FAN_OUT", "FAN_IN"]
    queue = await open_queue(env)
    parents = [await queue.submit("t") for _ in T]
    wanted = tuple(Dependency(parent, kind) for parent, kind in zip(parents, T, strict=True))
    child = await queue.submit("t", dependencies=wanted)
    assert await queue.dependencies(child) == wanted
    assert await queue.dependencies(parents[0]) == ()
    with raises(InvalidInput):
        await queue.submit("t", dependencies=[Dependency(parents[0], "BEFORE")])  # type: ignore[arg-type]
    with raises(InvalidInput):
        await queue.submit("t", dependencies=parents[0])


@suite.case(f"{PART}: AFTER", "executes only after all dependencies complete successfully")
async def after(env: Env) -> None:
    queue = await open_queue(env)
    parents = [await queue.submit("t") for _ in range(3)]
    child = await queue.submit("t", dependencies=parents)
    for parent in parents:
        assert await state(queue, child) is JobState.PENDING
        await run(queue, parent)
    assert await state(queue, child) is JobState.SCHEDULED
    assert (await claimed(queue)).id == child


@suite.case(f"{PART}: AFTER", "a dependency that has completed before is not waited for")
async def after_completed(env: Env) -> None:
    queue = await open_queue(env)
    parent = await queue.submit("t")
    await run(queue, parent)
    child = await queue.submit("t", dependencies=[parent])
    assert await state(queue, child) is JobState.SCHEDULED


@suite.case(f"{PART}: AFTER", "a retry of the dependency keeps the dependent waiting")
async def after_retry(env: Env) -> None:
    queue = await open_queue(env)
    parent = await queue.submit("t")
    child = await queue.submit("t", dependencies=[parent])
    await run(queue, parent, error="no")
    assert await state(queue, child) is JobState.PENDING
    env.clock.advance(1)
    await run(queue, parent)
    assert await state(queue, child) is JobState.SCHEDULED


@suite.case(f"{PART}: AFTER_ANY", "executes after any dependency completes, by success or failure")
async def after_any(env: Env) -> None:
    queue = await open_queue(env)
    for outcome in ({}, {"error": PermanentError("no", code="NO")}):
        first = await queue.submit("t")
        second = await queue.submit("t", delay=3600)
        child = await queue.submit(
            "t", dependencies=[Dependency(one, T.AFTER_ANY) for one in (first, second)]
        )
        assert await state(queue, child) is JobState.PENDING
        await run(queue, first, **outcome)
        assert await state(queue, child) is JobState.SCHEDULED
        await run(queue, child)
        assert await state(queue, second) is JobState.DELAYED


@suite.case(f"{PART}: AFTER_ANY", "a cancelled dependency has ended, too")
async def after_any_cancelled(env: Env) -> None:
    queue = await open_queue(env)
    parent = await queue.submit("t")
    child = await queue.submit("t", dependencies=[Dependency(parent, T.AFTER_ANY)])
    await queue.cancel(parent)
    assert await state(queue, child) is JobState.SCHEDULED


@suite.case(f"{PART}: CHAIN", "strictly one after the other")
async def chain(env: Env) -> None:
    queue = await open_queue(env)
    links = [JobRequest("t", 0)]
    links += [JobRequest("t", n, dependencies=[Dependency(n - 1, T.CHAIN)]) for n in range(1, 5)]
    ids = await queue.submit_batch(links)
    for position, job_id in enumerate(ids):
        waiting = ["PENDING"] * (len(ids) - position - 1)
        assert await states(queue, *ids[position:]) == ["SCHEDULED", *waiting]
        assert len(await queue.claim_batch("w", 1)) == 1
        job = await queue.get(job_id)
        assert await queue.claim("other") is None
        await queue.complete(job_id, token_of(job))
    assert await states(queue, *ids) == ["COMPLETED"] * 5


@suite.case(f"{PART}: CHAIN", "a failure stops the chain")
async def chain_stops(env: Env) -> None:
    queue = await open_queue(env)
    links = [JobRequest("t")]
    links += [JobRequest("t", dependencies=[Dependency(n - 1, T.CHAIN)]) for n in range(1, 4)]
    ids = await queue.submit_batch(links)
    await run(queue, ids[0])
    await run(queue, ids[1], error=PermanentError("no", code="NO"))
    assert await states(queue, *ids) == ["COMPLETED", "FAILED", "FAILED", "FAILED"]
    assert await queue.claim("w") is None


@suite.case(f"{PART}: FAN_OUT", "a running job spawns several jobs, which run in parallel")
async def fan_out(env: Env) -> None:
    queue = await open_queue(env)
    root = await queue.submit("root")
    job = await claimed(queue)
    spawned = await queue.spawn(root, token_of(job), [JobRequest("part", n) for n in range(5)])
    parts = await queue.claim_batch("w", 10)
    assert [part.id for part in parts] == list(spawned)
    assert {part.parent_id for part in parts} == {root}
    assert [part.payload for part in parts] == list(range(5))
    assert await state(queue, root) is JobState.RUNNING


@suite.case(f"{PART}: FAN_OUT", "as a dependency: all start in parallel once the one job completes")
async def fan_out_dependency(env: Env) -> None:
    queue = await open_queue(env)
    root = await queue.submit("t")
    parts = [await queue.submit("t", dependencies=[Dependency(root, T.FAN_OUT)]) for _ in range(3)]
    assert await states(queue, *parts) == ["PENDING"] * 3
    await run(queue, root)
    assert [part.id for part in await queue.claim_batch("w", 10)] == parts


@suite.case(f"{PART}: FAN_OUT", "spawning is fenced and all or nothing")
async def fan_out_fenced(env: Env) -> None:
    queue = await open_queue(env)
    root = await queue.submit("root")
    with raises(StaleToken):
        await queue.spawn(root, "none", [JobRequest("part")])
    job = await claimed(queue)
    with raises(StaleToken):
        await queue.spawn(root, "wrong", [JobRequest("part")])
    with raises(InvalidInput):
        await queue.spawn(root, token_of(job), [JobRequest("part"), JobRequest("")])
    assert await queue.claim("w") is None


@suite.case(f"{PART}: FAN_IN", "waits for all spawned jobs, joined to them as they are spawned")
async def fan_in(env: Env) -> None:
    queue = await open_queue(env)
    root = await queue.submit("root")
    job = await claimed(queue)
    requests = [JobRequest("part")] * 3
    *parts, join = await queue.spawn(root, token_of(job), requests, JobRequest("join"))
    assert await state(queue, join) is JobState.PENDING
    await queue.complete(root, token_of(job))
    for part in parts:
        assert await state(queue, join) is JobState.PENDING
        await run(queue, part)
    assert await state(queue, join) is JobState.SCHEDULED


@suite.case(f"{PART}: FAN_IN", "a join on the spawner waits for whatever it spawns while it runs")
async def fan_in_spawner(env: Env) -> None:
    queue = await open_queue(env)
    root = await queue.submit("root")
    join = await queue.submit("join", dependencies=[Dependency(root, T.FAN_IN)])
    job = await claimed(queue)
    parts: list[str] = []
    for _ in range(2):
        parts += await queue.spawn(root, token_of(job), [JobRequest("part")] * 2)
    await queue.complete(root, token_of(job))
    for part in parts:
        assert await state(queue, join) is JobState.PENDING
        await run(queue, part)
    assert await state(queue, join) is JobState.SCHEDULED


@suite.case(f"{PART}: FAN_IN", "a spawned job that fails takes the join with it")
async def fan_in_fails(env: Env) -> None:
    queue = await open_queue(env)
    root = await queue.submit("root")
    job = await claimed(queue)
    *parts, join = await queue.spawn(
        root, token_of(job), [JobRequest("part")] * 2, JobRequest("join")
    )
    await run(queue, parts[0], error=PermanentError("no", code="NO"))
    assert await states(queue, join, parts[1]) == ["FAILED", "SCHEDULED"]


@suite.case(PART, "types mix: every needed job and one of the others")
async def mixed(env: Env) -> None:
    queue = await open_queue(env)
    needed = await queue.submit("t", priority=0)
    one = await queue.submit("t", priority=1)
    other = await queue.submit("t", priority=2, delay=3600)
    child = await queue.submit(
        "t", dependencies=[needed, Dependency(one, T.AFTER_ANY), Dependency(other, T.AFTER_ANY)]
    )
    await run(queue, needed)
    assert await state(queue, child) is JobState.PENDING
    await run(queue, one)
    assert await state(queue, child) is JobState.SCHEDULED
