"""Workers: that they are there, also without room for more jobs, and how many of their slots are taken."""

from __future__ import annotations

import msgspec

from headrace import errors
from headrace.manager import JobManager
from headrace.manager.explanation import Explanation, Why
from headrace.stores.base import Finding, WorkerProcess
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import submit, suite

WEEK_SECONDS = 7 * 86_400


async def _told(manager: JobManager) -> list[tuple[str, int | None, int | None]]:
    since = manager.clock.now().replace(year=2000)
    return [(one.worker, one.slots, one.busy) for one in await manager.workers(since)]


def _whys(explanation: Explanation) -> list[Why]:
    return [reason.why for reason in explanation.reasons]


async def _workers_finding(manager: JobManager) -> Finding:
    return next(one for one in await manager.diagnose() if one.what == "workers")


@suite.case("announce", "a worker without room is still there, and says how many slots are taken")
async def without_room(env: Env) -> None:
    manager = await env.manager()
    for name in ("runs", "waits"):
        await submit(manager, name, lease_seconds=WEEK_SECONDS)
    (job,) = (await manager.claim_ahead("full", limit=1, slots=1, busy=0)).jobs
    assert await _told(manager) == [("full", 1, 0)]
    for _ in range(9):
        env.clock.advance(10)
        await manager.announce("full", slots=1, busy=1)
    assert await _told(manager) == [("full", 1, 1)]
    assert (await manager.workers(env.clock.now()))[0].seen_at == env.clock.now()
    assert _whys(await manager.explain("waits")) == [Why.NO_ROOM]
    await manager.complete(job.id, job.token)
    env.clock.advance(5)
    await manager.announce("full", slots=1, busy=0)
    assert _whys(await manager.explain("waits")) == [Why.READY]
    env.clock.advance(61)
    assert _whys(await manager.explain("waits")) == [Why.NO_WORKER]


@suite.case("announce", "is written every five seconds at most, however the number changes")
async def seldom(env: Env) -> None:
    manager = await env.manager()
    start = env.clock.now()
    for busy in range(5):
        await manager.claim_ahead("w", slots=9, busy=busy)
        await manager.announce("w", slots=9, busy=busy)
        env.clock.advance(0.9)
    assert await _told(manager) == [("w", 9, 0)]
    env.clock.advance(0.5)
    await manager.claim_ahead("w", slots=9, busy=7)
    assert await _told(manager) == [("w", 9, 7)]
    assert [one.seen_at for one in await manager.workers(start)] == [env.clock.now()]
    await manager.claim_ahead("w", queues=["another"], slots=9, busy=8)
    assert await _told(manager) == [("w", 9, 7)], "it asks for every queue already"
    await manager.claim("w")
    assert await _told(manager) == [("w", None, None)], "a claim that does not say so"


@suite.case("announce", "what cannot be is refused, and nothing is written")
async def refused(env: Env) -> None:
    manager = await env.manager()
    for slots, busy in ((0, 0), (-1, 0), (1, -1), (2**31, 0), (1, 2**31)):
        with raises(errors.InvalidLimit):
            await manager.announce("w", slots=slots, busy=busy)
        with raises(errors.InvalidLimit):
            await manager.claim_ahead("w", slots=slots, busy=busy)
    with raises(errors.InvalidName):
        await manager.announce("")
    assert await _told(manager) == []


@suite.case("explain", "says how many slots of the workers that take the job are taken")
async def explained(env: Env) -> None:
    manager = await env.manager()
    for name in ("a", "b"):
        await submit(manager, name, queue="q")
    await manager.announce("w-1", queues=["q"], slots=50, busy=50)
    await manager.announce("w-2", queues=["q"], slots=10, busy=9)
    await manager.announce("elsewhere", queues=["other"], slots=7, busy=7)
    (reason,) = (await manager.explain("a")).reasons
    assert (reason.why, reason.facts["busy"], reason.facts["slots"]) == (Why.NO_ROOM, 59, 60)
    assert reason.message == (
        "it is ready, and so is 1 other job of queue q; its workers are running 59 of 60"
    )
    await manager.cancel(["b"])
    assert _whys(await manager.explain("a")) == [Why.READY]
    env.clock.advance(6)
    await manager.announce("w-2", queues=["q"], slots=10, busy=10)
    (reason,) = (await manager.explain("a")).reasons
    assert (reason.why, reason.message) == (
        Why.NO_ROOM,
        "it is ready and next in line, but its workers are running 60 of 60",
    )
    # One that does not say how many it runs may have room.
    await manager.announce("bare", queues=["q"])
    (reason,) = (await manager.explain("a")).reasons
    assert (reason.why, reason.facts) == (Why.READY, {"ready": 1, "running": 0})


@suite.case("side channels", "how busy the operator's workers are is not told to a tenant")
async def of_tenants(env: Env) -> None:
    manager = await env.manager()
    acme = manager.scoped("acme")
    for name in ("a", "b"):
        await submit(acme, name)
    await acme.announce("own", slots=3, busy=2)
    await manager.scoped("mallory").announce("mallory-1", slots=1000, busy=1000)
    (reason,) = (await acme.explain("a")).reasons
    assert reason.message.endswith("its workers are running 2 of 3")
    assert (await _workers_finding(acme)).value == (
        "1 seen in the last 60 seconds, 2 of 3 slots taken"
    )
    await manager.announce("operator", slots=100, busy=40)
    (reason,) = (await acme.explain("a")).reasons
    assert reason.facts == {"ready": 2, "running": 0}
    assert reason.message.endswith("its workers are running 0")
    assert (await _workers_finding(acme)).value == (
        "2 seen in the last 60 seconds, 2 of 3 slots taken"
    )
    assert await _told(acme) == [("own", 3, 2)]
    (reason,) = (await manager.explain("a")).reasons
    assert reason.message.endswith("its workers are running 42 of 103")
    assert (await _workers_finding(manager)).value == (
        "3 seen in the last 60 seconds, 1042 of 1103 slots taken"
    )


@suite.case(
    "announce", "a worker says where it runs, and that it drains: then nobody is sent to it"
)
async def process_told(env: Env) -> None:
    manager = await env.manager()
    process = WorkerProcess(host="h-1", pid=7, version="1.2", started_at=env.clock.now())
    await submit(manager, "a", queue="q")
    await submit(manager, "b", queue="q")
    await manager.announce("w", queues=["q"], slots=2, busy=0, process=process)
    (seen,) = await manager.workers(env.clock.now())
    assert seen.process == process
    env.clock.advance(6)
    await manager.claim("w", queues=["q"])
    (seen,) = await manager.workers(env.clock.now())
    assert (seen.process, seen.seen_at) == (process, env.clock.now())
    draining = msgspec.structs.replace(process, draining=True)
    await manager.announce("w", queues=["q"], slots=2, busy=1, process=draining)
    (seen,) = await manager.workers(env.clock.now())
    assert seen.process == draining, "that is written at once"
    assert _whys(await manager.explain("b")) == [Why.NO_WORKER]
    assert [one.why for one in (await manager.explain_queue("q")).reasons] == [Why.NO_WORKER]
