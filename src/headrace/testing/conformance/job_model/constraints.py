"""6. Dependency Constraints 1 to 5, at the limit and past it."""

from __future__ import annotations

import uuid

from headrace.contracts.job_model import (
    Dependency,
    DependencyCycle,
    DependencyNotFound,
    DependencyType,
    InvalidBatch,
    InvalidDependency,
    JobRequest,
    JobState,
    Priority,
)
from headrace.manager import Completed
from headrace.testing.conformance.job_model.suite import (
    claimed,
    open_queue,
    run,
    state,
    suite,
    token_of,
)
from headrace.testing.conformance.kit import Env, raises

PART = "6. Dependency Constraints"


@suite.case(f"{PART}: 1. Acyclic", "a circle within a batch is rejected and nothing is stored")
async def acyclic(env: Env) -> None:
    queue = await open_queue(env)
    for length in (1, 2, 3, 50):
        circle = [JobRequest("t", dependencies=[(n + 1) % length]) for n in range(length)]
        with raises(DependencyCycle):
            await queue.submit_batch([JobRequest("free"), *_shift(circle, 1)])
    assert await queue.claim_batch("w", 100) == ()


def _shift(requests: list[JobRequest], by: int) -> list[JobRequest]:
    """The same jobs further down in a batch."""
    return [
        JobRequest(
            one.type, dependencies=[at + by for at in one.dependencies if isinstance(at, int)]
        )
        for one in requests
    ]


@suite.case(f"{PART}: 1. Acyclic", "a graph that only looks like a circle is accepted")
async def diamond(env: Env) -> None:
    queue = await open_queue(env)
    ids = await queue.submit_batch(
        [
            JobRequest("bottom", dependencies=[1, 2]),
            JobRequest("left", dependencies=[3]),
            JobRequest("right", dependencies=[3]),
            JobRequest("top"),
        ]
    )
    for position in (3, 1, 2, 0):
        await run(queue, ids[position])
    assert await queue.claim("w") is None


@suite.case(f"{PART}: 2. Bounded depth", "100 levels are accepted, 101 are not")
async def depth(env: Env) -> None:
    queue = await open_queue(env)
    last = await queue.submit("t")
    for _ in range(100):
        last = await queue.submit("t", dependencies=[last])
    assert await state(queue, last) is JobState.PENDING
    with raises(InvalidDependency):
        await queue.submit("too deep", dependencies=[last])
    assert await queue.claim("w", types=["too deep"]) is None


@suite.case(f"{PART}: 2. Bounded depth", "the same within one batch")
async def depth_in_a_batch(env: Env) -> None:
    queue = await open_queue(env)

    def chain(levels: int) -> list[JobRequest]:
        links = [JobRequest("t", dependencies=[n]) for n in range(levels)]
        return [JobRequest("t"), *links]

    assert len(await queue.submit_batch(chain(100))) == 101
    with raises(InvalidDependency):
        await queue.submit_batch(chain(101))
    assert len(await queue.claim_batch("w", 1000)) == 1


@suite.case(f"{PART}: 3. Bounded breadth", "1000 dependencies are accepted, 1001 are not")
async def breadth(env: Env) -> None:
    queue = await open_queue(env)
    parents = await queue.submit_batch([JobRequest("t")] * 1001)
    with raises(InvalidDependency):
        await queue.submit("wide", dependencies=parents)
    child = await queue.submit("wide", dependencies=parents[:1000])
    assert await state(queue, child) is JobState.PENDING
    assert len(await queue.dependencies(child)) == 1000
    assert await queue.claim("w", types=["wide"]) is None


@suite.case(
    f"{PART}: 3. Bounded breadth", "a job with 1000 dependencies runs after the last of them"
)
async def breadth_released(env: Env) -> None:
    queue = await open_queue(env)
    parents = await queue.submit_batch([JobRequest("t")] * 1000)
    child = await queue.submit("wide", dependencies=parents)
    most = [Completed(job_id=job.id, token=job.token) for job in await queue.claim_batch("w", 999)]
    await queue.manager.settle(most)  # in one step: a commit for each would only cost time
    assert await state(queue, child) is JobState.PENDING
    last = await claimed(queue)
    assert last.id == parents[-1]
    await queue.complete(last.id, token_of(last))
    assert await state(queue, child) is JobState.SCHEDULED


@suite.case(f"{PART}: 3. Bounded breadth", "one dependency may have 1000 dependents")
async def wide_fan_out(env: Env) -> None:
    queue = await open_queue(env)
    root = await queue.submit("root")
    waits = [JobRequest("t", dependencies=[Dependency(root, DependencyType.FAN_OUT)])] * 1000
    ids = await queue.submit_batch(waits)
    await run(queue, root)
    assert [job.id for job in await queue.claim_batch("w", 2000)] == list(ids)


@suite.case(f"{PART}: 3. Bounded breadth", "spawning counts towards a join's limit")
async def breadth_of_a_join(env: Env) -> None:
    queue = await open_queue(env)
    root = await queue.submit("root")
    join = await queue.submit("join", dependencies=[Dependency(root, DependencyType.FAN_IN)])
    job = await claimed(queue)
    with raises(InvalidDependency):
        await queue.spawn(root, token_of(job), [JobRequest("part")] * 1000)
    assert await queue.claim("w") is None
    assert len(await queue.spawn(root, token_of(job), [JobRequest("part")] * 999)) == 999
    assert len(await queue.dependencies(join)) == 1000


@suite.case(f"{PART}: 4. Resolved references", "every dependency must exist at submission")
async def resolved(env: Env) -> None:
    queue = await open_queue(env)
    known = await queue.submit("known", delay=60)
    for missing in (str(uuid.uuid4()), "nonsense"):
        with raises(DependencyNotFound):
            await queue.submit("t", dependencies=[known, missing])
    for position in (2, -1):
        with raises(DependencyNotFound, InvalidBatch):
            await queue.submit_batch([JobRequest("t"), JobRequest("t", dependencies=[position])])
    assert await queue.claim("w") is None


@suite.case(
    f"{PART}: 5. Cross-priority", "dependencies cross levels; the child inherits the highest"
)
async def cross_priority(env: Env) -> None:
    queue = await open_queue(env)
    parents = [await queue.submit("t", priority=level) for level in Priority]
    child = await queue.submit("t", priority=Priority.BULK, dependencies=parents)
    lower = await queue.submit("t", priority=Priority.BULK, dependencies=parents[3:])
    assert (await queue.get(child)).priority is Priority.CRITICAL
    assert (await queue.get(lower)).priority is Priority.LOW
    for parent in parents:
        await run(queue, parent)
    assert [(await claimed(queue)).id for _ in range(2)] == [child, lower]
