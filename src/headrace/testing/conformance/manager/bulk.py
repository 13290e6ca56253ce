"""Cancelling, deleting and redriving by what jobs are like."""

from __future__ import annotations

from datetime import timedelta
from unittest import mock

from headrace import errors
from headrace.errors import PermanentError
from headrace.manager import Bulk, Completed, Failed, JobManager, Matching
from headrace.manager import bulk as steps
from headrace.model import Category, Failure, Job, State
from headrace.policy import CancelMode, Policy
from headrace.spec import JobSpec
from headrace.stores.base import Commit, Committed
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import finish, submit, suite, take, unchanged


async def fail(manager: JobManager, job_id: str, message: str, code: str | None = None) -> None:
    _, token = await take(manager, job_id)
    await manager.fail(job_id, token, PermanentError(message), code=code)


def wrong(job: Job) -> Failed:
    failure = Failure(f"row {job.payload} is bad", Category.TEMPORARY)
    return Failed(job_id=job.id, token=job.token, failure=failure)


async def ids(manager: JobManager, **filters: object) -> set[str]:
    return {job.id async for job in manager.find(**filters)}  # type: ignore[arg-type]


@suite.case(
    "matching", "no filter at all is refused, as are states that cannot be; nothing changes"
)
async def refused(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j")
    before = await unchanged(manager)
    for verb in (manager.cancel_matching, manager.delete_matching, manager.redrive_matching):
        with raises(errors.EmptySelection):
            await verb(Matching())
        with raises(errors.EmptySelection):
            await verb(Matching(tags=[]), dry_run=True)
        with raises(errors.InvalidInput):
            await verb(Matching(states="dead"))
        with raises(errors.InvalidInput):
            await verb(Matching(states=["done"]))
        with raises(errors.InvalidInput):
            await verb("default")  # type: ignore[arg-type]
    with raises(errors.InvalidInput):
        await manager.delete_matching(Matching(states=[State.PENDING]))
    with raises(errors.InvalidInput):
        await manager.redrive_matching(Matching(states=["dead", "completed"]))
    with raises(errors.InvalidInput):
        await manager.cancel_matching(Matching(states=["dead"]))
    assert await manager.cancel_matching(Matching(queues=[])) == Bulk(dry_run=False)
    assert await unchanged(manager) == before


@suite.case(
    "matching", "every filter holds: queue, type, state, tags, code, text of the error, time"
)
async def every_filter(env: Env) -> None:
    manager = await env.manager(Policy(max_attempts=1))
    start = env.clock.now()
    for n, queue, type_, message, code in (
        (0, "mail", "send", "no such user 'ada'", "E404"),
        (1, "mail", "send", "Busy until 10:15", "E503"),
        (2, "mail", "fetch", "busy until 11:30", "E503"),
        (3, "web", "send", "busy until 12:45", "E503"),
    ):
        await submit(manager, f"j{n}", queue=queue, type=type_, tags=["even"] if n % 2 == 0 else [])
        await fail(manager, f"j{n}", message, code)
        env.clock.advance(60)

    async def found(**filters: object) -> tuple[int, list[tuple[int, str, str | None]]]:
        where = Matching(**filters)  # type: ignore[arg-type]
        told = await manager.redrive_matching(where, dry_run=True)
        return told.done, [(one.jobs, one.example, one.message) for one in told.groups]

    assert await found(states=["failed"], queues=["mail"], types=["send"]) == (
        2,
        [(1, "j0", "no such user <text>"), (1, "j1", "Busy until <n>")],
    )
    assert (await found(codes=["E503"]))[0] == 3
    assert (await found(error="BUSY"))[0] == 3
    assert (await found(error="busy", codes=["E404"]))[0] == 0
    assert (await found(tags=["even"], error="busy"))[1] == [(1, "j2", "busy until <n>")]
    assert (await found(since=start + timedelta(seconds=60)))[0] == 3
    assert (await found(before=start + timedelta(seconds=60)))[0] == 1
    within = {"since": start + timedelta(seconds=60), "before": start + timedelta(seconds=180)}
    assert (await found(**within))[0] == 2
    assert (await found(states=["dead"]))[0] == 0
    assert await ids(manager, states=["failed"]) == {"j0", "j1", "j2", "j3"}


@suite.case(
    "redrive", "whatever matches, in steps: each once, also when it is repeated or goes wrong again"
)
async def redrive_each_once(env: Env) -> None:
    manager = await env.manager(Policy(max_attempts=1))
    count = 2 * steps.STEP_JOBS + 7
    await manager.submit_many([JobSpec(type="t", payload=n, tags=["x"]) for n in range(count)])

    async def end_all() -> None:
        while held := await manager.claim("w", limit=500):
            await manager.settle([wrong(job) for job in held])

    for job in await manager.claim("w", limit=3):
        await manager.complete(job.id, job.token)
    await end_all()
    where = Matching(states=["dead"], tags=["x"])
    plan = await manager.redrive_matching(where, dry_run=True)
    assert (plan.done, [(one.jobs, one.message) for one in plan.groups]) == (
        count - 3,
        [(count - 3, "row <n> is bad")],
    )
    told: list[int] = []
    done = await manager.redrive_matching(where, tell=lambda so_far: told.append(so_far.done))
    assert (done.done, done.left) == (count - 3, {})
    assert told == [steps.STEP_JOBS, 2 * steps.STEP_JOBS, count - 3]
    again = await manager.redrive_matching(where)
    assert (again.done, again.left) == (0, {"redriven before": count - 3})
    # They die again: what is redriven now are the new jobs, and not the old ones once more.
    await end_all()
    twice = await manager.redrive_matching(where)
    assert (twice.done, twice.left) == (count - 3, {"redriven before": count - 3})
    payloads = [job.payload async for job in manager.find(states=["pending"])]
    assert sorted(payloads) == list(range(3, count))
    while held := await manager.claim("w", limit=500):
        await manager.settle([Completed(job_id=job.id, token=job.token) for job in held])
    assert (await manager.redrive_matching(where)).done == 0


@suite.case("redrive", "by tag runs the last of a line again, by id whichever is named")
async def redrive_the_last(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "first", tags=["x"])
    await manager.cancel(["first"])
    (second,) = (await manager.redrive(tags=["x"])).jobs
    await manager.cancel([second.id])
    (third,) = (await manager.redrive(tags=["x"])).jobs
    assert third.previous_id == second.id
    assert (await manager.redrive([second.id])).jobs[0].id == third.id
    named = await manager.redrive(["first"])
    assert named.created == (True,)
    assert named.job.previous_id == "first"
    assert (await manager.redrive(["first"])).jobs[0].id == named.job.id
    await manager.cancel([named.job.id])
    last = (await manager.redrive(["first"])).job
    assert last.id not in (second.id, named.job.id)
    heirs = await manager.redriven_as(["first", second.id, third.id, "nobody"])
    assert {job_id: job.id for job_id, job in heirs.items()} == {
        "first": last.id,
        second.id: third.id,
    }


@suite.case("cancel", "what matches and waits; what runs as the mode says, each by itself")
async def cancel_matching(env: Env) -> None:
    manager = await env.manager()
    for n in range(4):
        await submit(manager, f"mail-{n}", queue="mail")
    await submit(manager, "web", queue="web")
    (held,) = await manager.claim("other", limit=1)
    assert held.id == "mail-0"
    where = Matching(queues=["mail"])
    plan = await manager.cancel_matching(where, mode=CancelMode.NOT_STARTED, dry_run=True)
    assert (plan.done, plan.left) == (3, {"running": 1})
    assert await ids(manager, states=["cancelled"]) == set()
    done = await manager.cancel_matching(where, mode=CancelMode.NOT_STARTED, reason="no more mail")
    assert (done.done, done.left) == (3, {"running": 1})
    assert await ids(manager, states=["cancelled"]) == {"mail-1", "mail-2", "mail-3"}
    failure = (await manager.get("mail-1")).failure
    assert failure is not None
    assert failure.message == "no more mail"
    rest = await manager.cancel_matching(where, mode=CancelMode.IMMEDIATE)
    assert (rest.done, rest.freed) == (1, {"other": 1})
    assert (await manager.get("web")).state is State.PENDING


@suite.case("delete", "what matches and has ended; live jobs and other tenants' stay")
async def delete_matching(env: Env) -> None:
    manager = await env.manager()
    for tenant in ("a", "b"):
        await submit(manager, f"{tenant}-done", tenant=tenant)
    await finish(manager, "a-done", "b-done")
    await submit(manager, "a-live", tenant="a")
    env.clock.advance(100)
    own = manager.scoped("a")
    old = Matching(before=env.clock.now() - timedelta(seconds=100))
    assert (await own.delete_matching(old)).done == 0
    where = Matching(queues=["default"])
    assert (await own.delete_matching(where, dry_run=True)).done == 1
    gone = await own.delete_matching(where)
    assert (gone.done, [(one.state, one.message) for one in gone.groups]) == (
        1,
        [(State.COMPLETED, None)],
    )
    assert await ids(manager) == {"b-done", "a-live"}
    assert (await own.delete_matching(where)).done == 0


@suite.case("matching", "a job that is claimed before its turn is no waiting job any more")
async def claimed_meanwhile(env: Env) -> None:
    manager = await env.manager()
    for job_id in ("a", "b"):
        await submit(manager, job_id)
    commit = manager.store.commit

    async def too_late(wanted: Commit) -> Committed:
        with mock.patch.object(manager.store, "commit", commit):
            await manager.claim("w")
            return await commit(wanted)

    with mock.patch.object(manager.store, "commit", too_late):
        told = await manager.cancel_matching(Matching(states=[State.PENDING]))
    assert (told.done, told.left) == (1, {"changed meanwhile": 1})
    assert (await manager.get("a")).state is State.RUNNING
    assert (await manager.get("b")).state is State.CANCELLED


@suite.case("matching", "a job that ends before its turn is left as it ended")
async def ended_meanwhile(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "a")
    _, token = await take(manager, "a")
    commit = manager.store.commit

    async def too_late(wanted: Commit) -> Committed:
        with mock.patch.object(manager.store, "commit", commit):
            await manager.complete("a", token)
            return await commit(wanted)

    with mock.patch.object(manager.store, "commit", too_late):
        told = await manager.cancel_matching(Matching(queues=["default"]))
    assert (told.done, told.left) == (0, {"changed meanwhile": 1})
    assert (await manager.get("a")).state is State.COMPLETED
