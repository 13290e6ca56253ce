"""Cancelling: by id and by tag, in three modes, in one step, with a dry run."""

from __future__ import annotations

from headrace import errors
from headrace.model import Category, State
from headrace.policy import CancelMode, Policy
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import states, submit, suite, take, unchanged


@suite.case("cancel", "a waiting job is cancelled at once, in every mode")
async def waiting(env: Env) -> None:
    manager = await env.manager()
    for mode in CancelMode:
        job = await submit(manager, mode.value)
        report = await manager.cancel([job.id], mode=mode, reason="enough")
        (after,) = report.jobs
        assert (after.state, after.finalized_at, report.freed) == (
            State.CANCELLED,
            env.clock.now(),
            {},
        )
        assert after.failure is not None
        assert (after.failure.message, after.failure.category) == ("enough", Category.CANCELLED)


@suite.case("cancel", "cooperative: the worker is asked, and answers")
async def cooperative(env: Env) -> None:
    manager = await env.manager()
    for name, was_executing, end in (
        ("stopped", True, State.CANCELLED),
        ("unknown", False, State.ABANDONED),
    ):
        await submit(manager, name)
        _, token = await take(manager, name)
        report = await manager.cancel([name])
        assert (report.jobs[0].state, report.freed) == (State.CANCELLING, {})
        again = await manager.cancel([name])
        assert [job.id for job in again.already] == [name]
        assert not again.jobs
        changed = await manager.acknowledge_cancel(name, token, was_executing=was_executing)
        assert (changed.job.state, changed.freed) == (end, {"w": 1})
        with raises(errors.JobCancelled):
            await manager.complete(name, token)


@suite.case(
    "cancel", "cooperative: a worker that is done first has completed; one that fails is cancelled"
)
async def crossed(env: Env) -> None:
    manager = await env.manager()
    for name in ("done", "failed", "released"):
        await submit(manager, name)
    tokens = {job.id: job.token for job in await manager.claim("w", limit=3)}
    await manager.cancel(list(tokens))
    assert (await manager.complete("done", tokens["done"])).job.state is State.COMPLETED
    failed = (await manager.fail("failed", tokens["failed"], "no")).job
    assert (failed.state, failed.failures) == (State.CANCELLED, 1)
    assert (await manager.release("released", tokens["released"])).job.state is State.CANCELLED


@suite.case("cancel", "immediate: cancel wins, the lease is void, the worker is freed")
async def immediate(env: Env) -> None:
    manager = await env.manager(Policy(cancel=CancelMode.IMMEDIATE))
    await submit(manager, "j")
    _, token = await take(manager, "j")
    report = await manager.cancel(["j"])
    assert (report.jobs[0].state, report.freed) == (State.CANCELLED, {"w": 1})
    with raises(errors.JobCancelled):
        await manager.complete("j", token)


@suite.case("cancel", "not_started: a running job is left alone and named")
async def not_started(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "running")
    await take(manager, "running")
    await submit(manager, "waiting")
    report = await manager.cancel(["running", "waiting"], mode=CancelMode.NOT_STARTED)
    assert [job.id for job in report.jobs] == ["waiting"]
    assert [job.id for job in report.refused] == ["running"]
    assert await states(manager, ["running", "waiting"]) == [State.RUNNING, State.CANCELLED]


@suite.case("cancel", "ids and tags: the union, each once; ended and unknown are told apart")
async def union(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "both", tags=["x", "y"])
    await submit(manager, "tagged", tags=["x", "y", "z"])
    await submit(manager, "half", tags=["x"])
    await submit(manager, "named")
    await submit(manager, "ended", tags=["x", "y"])
    await manager.cancel(["ended"])
    report = await manager.cancel(["both", "named", "nobody", "ended"], tags=["x", "y"])
    assert {job.id for job in report.jobs} == {"both", "tagged", "named"}
    assert [job.id for job in report.ended] == ["ended"]
    assert report.not_found == ("nobody",)
    assert (await manager.get("half")).state is State.PENDING


@suite.case("cancel", "a dry run says what would happen and changes nothing")
async def dry_run(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "waiting", tags=["x"])
    await submit(manager, "running", tags=["x"])
    before_claim = await manager.claim("w", limit=1, tags=["x"])
    assert [job.id for job in before_claim] == ["waiting"]
    before = await unchanged(manager)
    report = await manager.cancel(tags=["x"], dry_run=True)
    assert {job.id: job.state for job in report.jobs} == {
        "waiting": State.CANCELLING,
        "running": State.CANCELLED,
    }
    assert await unchanged(manager) == before
    assert await states(manager, ["waiting", "running"]) == [State.RUNNING, State.PENDING]


@suite.case("cancel", "a lease that lapses while cancelling is abandoned, outcome unknown")
async def silent_worker(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j", lease_seconds=10)
    await take(manager, "j")
    await manager.cancel(["j"])
    env.clock.advance(10)
    changed = await manager.reap()
    assert (changed.job.state, changed.freed) == (State.ABANDONED, {"w": 1})


@suite.case("abandon", "ends what nobody answers for; an ended job stays as it is")
async def abandon(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j")
    await take(manager, "j")
    changed = await manager.abandon("j", "no answer")
    assert (changed.job.state, changed.freed) == (State.ABANDONED, {"w": 1})
    with raises(errors.JobTerminal):
        await manager.abandon("j")
    with raises(errors.JobNotFound):
        await manager.abandon("nobody")
    await submit(manager, "pending")
    with raises(errors.InvalidTransition):
        await manager.abandon("pending")
