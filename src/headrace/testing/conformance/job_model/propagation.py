"""6. Dependency State Propagation: each row, directly, transitively, and at submission."""

from __future__ import annotations

from typing import Any

from headrace import lifecycle
from headrace.contracts.job_model import (
    Dependency,
    DependencyType,
    FailureCategory,
    Job,
    PermanentError,
    Queue,
    RetryConfig,
)
from headrace.stores.base import Commit
from headrace.testing.conformance.job_model.suite import (
    claimed,
    open_queue,
    run,
    states,
    suite,
    token_of,
)
from headrace.testing.conformance.kit import Env

PART = "6. Dependency State Propagation"


async def end(queue: Queue, job_id: str, expected: str) -> Job:
    """Bring a job that is next in line to the terminal state of this name."""
    match expected:
        case "CANCELLED":
            return await queue.cancel(job_id)
        case "FAILED":
            return await run(queue, job_id, error=PermanentError("no", code="NO"))
        case "DEAD_LETTER":
            return await run(queue, job_id, error="no")
        case _:
            return await run(queue, job_id)


async def family(queue: Queue, **first: Any) -> tuple[str, str, str, str]:
    """A job, two that need it (by AFTER, by CHAIN), and one that needs the first of those."""
    root = await queue.submit("t", retry=RetryConfig(max_attempts=1), **first)
    after = await queue.submit("t", dependencies=[root])
    chained = await queue.submit("t", dependencies=[Dependency(root, DependencyType.CHAIN)])
    grandchild = await queue.submit("t", dependencies=[after])
    return root, after, chained, grandchild


@suite.case(f"{PART}: COMPLETED", "the dependent may proceed")
async def completed(env: Env) -> None:
    queue = await open_queue(env)
    ids = await family(queue)
    assert await states(queue, *ids) == ["SCHEDULED", "PENDING", "PENDING", "PENDING"]
    await end(queue, ids[0], "COMPLETED")
    assert await states(queue, *ids) == ["COMPLETED", "SCHEDULED", "SCHEDULED", "PENDING"]


@suite.case(f"{PART}: FAILED", "the dependent moves to FAILED, and so do its own dependents")
async def failed(env: Env) -> None:
    queue = await open_queue(env)
    ids = await family(queue)
    await end(queue, ids[0], "FAILED")
    assert await states(queue, *ids) == ["FAILED"] * 4
    assert await queue.claim("w") is None


@suite.case(f"{PART}: DEAD_LETTER", "the dependent moves to DEAD_LETTER, and so do its own")
async def dead_letter(env: Env) -> None:
    queue = await open_queue(env)
    ids = await family(queue)
    await end(queue, ids[0], "DEAD_LETTER")
    assert await states(queue, *ids) == ["DEAD_LETTER"] * 4
    assert await queue.claim("w") is None


@suite.case(f"{PART}: CANCELLED", "the dependent moves to CANCELLED, and so do its own")
async def cancelled(env: Env) -> None:
    queue = await open_queue(env)
    ids = await family(queue)
    await end(queue, ids[0], "CANCELLED")
    assert await states(queue, *ids) == ["CANCELLED"] * 4
    for job_id in ids:
        failure = (await queue.get(job_id)).failure
        assert failure is not None
        assert failure.category is FailureCategory.CANCELLED


@suite.case(PART, "a dependent of an ended job is judged at its submission, by the same rows")
async def at_submission(env: Env) -> None:
    queue = await open_queue(env)
    expected = {
        "COMPLETED": "SCHEDULED",
        "FAILED": "FAILED",
        "DEAD_LETTER": "DEAD_LETTER",
        "CANCELLED": "CANCELLED",
    }
    for outcome, effect in expected.items():
        root = await queue.submit("t", retry=RetryConfig(max_attempts=1))
        assert (await end(queue, root, outcome)).state.value == outcome
        child = await queue.submit("t", dependencies=[root])
        assert await states(queue, child) == [effect]
        if effect == "SCHEDULED":
            await run(queue, child)


@suite.case(PART, "a chain a hundred deep falls to its last job")
async def transitive(env: Env) -> None:
    queue = await open_queue(env)
    ids = [await queue.submit("t")]
    for _ in range(100):
        ids.append(await queue.submit("t", dependencies=[ids[-1]]))
    await queue.cancel(ids[0])
    assert await states(queue, *ids) == ["CANCELLED"] * 101


@suite.case(PART, "an AFTER_ANY dependent is not taken down")
async def after_any(env: Env) -> None:
    queue = await open_queue(env)
    for outcome in ("FAILED", "DEAD_LETTER", "CANCELLED"):
        root = await queue.submit("t", retry=RetryConfig(max_attempts=1))
        child = await queue.submit("t", dependencies=[Dependency(root, DependencyType.AFTER_ANY)])
        await end(queue, root, outcome)
        assert await states(queue, child) == ["SCHEDULED"]
        await run(queue, child)


@suite.case(PART, "one bad dependency of several is enough; the others go on")
async def one_of_several(env: Env) -> None:
    queue = await open_queue(env)
    bad, good = await queue.submit("t"), await queue.submit("t")
    child = await queue.submit("t", dependencies=[bad, good])
    await end(queue, bad, "FAILED")
    assert await states(queue, bad, good, child) == ["FAILED", "SCHEDULED", "FAILED"]
    await run(queue, good)
    assert await states(queue, child) == ["FAILED"]


@suite.case(PART, "lifetime and lost workers propagate as DEAD_LETTER")
async def by_time(env: Env) -> None:
    queue = await open_queue(env)
    root = await queue.submit("t", retry=RetryConfig(max_attempts=1))
    child = await queue.submit("t", dependencies=[root])
    await claimed(queue)
    env.clock.advance(300)
    await queue.reclaim()
    assert await states(queue, root, child) == ["DEAD_LETTER", "DEAD_LETTER"]


@suite.case(PART, "a crash between a job's end and its dependents' release is mended by the sweep")
async def swept(env: Env) -> None:
    queue = await open_queue(env)
    root = await queue.submit("t")
    child = await queue.submit("t", dependencies=[root])
    job = await claimed(queue)
    # What a process does that dies right after its commit: the end is stored, nothing follows.
    await _complete_and_die(queue, job, env)
    assert await states(queue, root, child) == ["COMPLETED", "PENDING"]
    assert await queue.sweep() == 1
    assert await states(queue, child) == ["SCHEDULED"]
    assert await queue.sweep() == 0


async def _complete_and_die(queue: Queue, job: Job, env: Env) -> None:
    stored = await queue.manager.get(job.id)
    change = lifecycle.apply(stored, lifecycle.Complete(token=token_of(job)), env.clock.now())
    committed = await queue.manager.store.commit(Commit(changes=[change]))
    assert list(committed.applied) == [True]
