"""3. Priority Semantics: the levels, and scheduling rules 1 to 5."""

from __future__ import annotations

from headrace.contracts.job_model import InvalidInput, JobRequest, JobState, Priority
from headrace.testing.conformance.job_model.suite import (
    claimed,
    open_queue,
    run,
    state,
    suite,
    token_of,
)
from headrace.testing.conformance.kit import Env, raises

RULES = "3. Scheduling Rules"


@suite.case("3. Priority Levels", "0 CRITICAL, 1 HIGH, 2 NORMAL, 3 LOW, 4 BULK; NORMAL by default")
async def levels(env: Env) -> None:
    assert [(level.value, level.name) for level in Priority] == [
        (0, "CRITICAL"),
        (1, "HIGH"),
        (2, "NORMAL"),
        (3, "LOW"),
        (4, "BULK"),
    ]
    queue = await open_queue(env)
    assert (await queue.get(await queue.submit("t"))).priority is Priority.NORMAL
    for level in Priority:
        assert (await queue.get(await queue.submit("t", None, level))).priority is level
    for bad in (-1, 5, "URGENT", None, True):
        with raises(InvalidInput):
            await queue.submit("t", priority=bad)  # type: ignore[arg-type]  # the point


@suite.case(f"{RULES}: 1. Priority ordering", "higher priority is scheduled before lower")
async def ordering(env: Env) -> None:
    queue = await open_queue(env)
    for level in (4, 2, 0, 3, 1):
        await queue.submit("t", priority=level)
        env.clock.advance(1)
    assert [(await claimed(queue)).priority.value for _ in range(5)] == [0, 1, 2, 3, 4]


@suite.case(f"{RULES}: 2. FIFO within priority", "equal priorities in order of submission")
async def fifo(env: Env) -> None:
    queue = await open_queue(env)
    singles = [await queue.submit("t") for _ in range(5)]
    batch = await queue.submit_batch([JobRequest("t")] * 5)
    env.clock.advance(1)
    last = await queue.submit("t")
    assert [(await claimed(queue)).id for _ in range(11)] == [*singles, *batch, last]


@suite.case(f"{RULES}: 3. No starvation guarantee", "low runs when nothing higher is left")
async def starvation(env: Env) -> None:
    queue = await open_queue(env)
    bulk = await queue.submit("t", priority=Priority.BULK)
    for _ in range(3):
        high = await queue.submit("t", priority=Priority.HIGH)
        await run(queue, high)
    waiting = await queue.submit("t", priority=Priority.HIGH, delay=60)
    assert (await claimed(queue)).id == bulk  # a job that is not due does not hold it back
    assert await state(queue, waiting) is JobState.DELAYED


@suite.case(f"{RULES}: 4. No preemption", "a running job goes on when a more urgent one comes")
async def no_preemption(env: Env) -> None:
    queue = await open_queue(env)
    bulk = await queue.submit("t", priority=Priority.BULK)
    job = await claimed(queue, "w1")
    urgent = await queue.submit("t", priority=Priority.CRITICAL)
    assert await queue.get(bulk) == job
    assert (await claimed(queue, "w2")).id == urgent
    assert (await queue.complete(bulk, token_of(job))).state is JobState.COMPLETED


@suite.case(
    f"{RULES}: 5. Priority inheritance", "a dependent inherits the maximum of its dependencies"
)
async def inheritance(env: Env) -> None:
    queue = await open_queue(env)
    high = await queue.submit("t", priority=Priority.HIGH)
    low = await queue.submit("t", priority=Priority.LOW)
    child = await queue.submit("t", priority=Priority.BULK, dependencies=[low, high])
    grandchild = await queue.submit("t", priority=Priority.BULK, dependencies=[child])
    assert (await queue.get(child)).priority is Priority.HIGH
    assert (await queue.get(grandchild)).priority is Priority.HIGH


@suite.case(f"{RULES}: 5. Priority inheritance", "a dependent's own higher priority stands")
async def inheritance_never_lowers(env: Env) -> None:
    queue = await open_queue(env)
    bulk = await queue.submit("t", priority=Priority.BULK)
    child = await queue.submit("t", priority=Priority.CRITICAL, dependencies=[bulk])
    assert (await queue.get(child)).priority is Priority.CRITICAL
    assert (await queue.get(bulk)).priority is Priority.BULK
