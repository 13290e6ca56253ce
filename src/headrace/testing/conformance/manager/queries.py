"""Reading: pages, statistics, explanations, pauses, events."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from headrace import history
from headrace.errors import PermanentError
from headrace.manager import JobManager, Why
from headrace.model import Event, State
from headrace.policy import Policy
from headrace.spec import JobSpec
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.manager.suite import finish, submit, suite, take


@suite.case("find", "pages with a cursor: each job once, stable while jobs change and arrive")
async def pages(env: Env) -> None:
    manager = await env.manager()
    await manager.submit_many([JobSpec(type="t", id=f"j{n:02}") for n in range(10)])
    first = await manager.find(limit=4)
    await manager.claim("w", limit=6)
    await submit(manager, "late")
    seen = [job.id for job in first.jobs]
    cursor = first.cursor
    while cursor is not None:
        page = await manager.find(limit=4, cursor=cursor)
        seen += [job.id for job in page.jobs]
        cursor = page.cursor
    assert seen == [*(f"j{n:02}" for n in range(10)), "late"]
    newest = await manager.find(newest_first=True, limit=2)
    assert [job.id for job in newest.jobs] == ["late", "j09"]


@suite.case("stats", "by state, queue, tenant and tags; ready and delayed; failures")
async def stats(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "a", queue="q1", tags=["x"])
    await submit(manager, "b", queue="q2", tags=["x"])
    await submit(manager, "c", queue="q2", delay_seconds=50)
    _, token = await take(manager, "a")
    await manager.fail("a", token, "no", retry_after=10)
    await manager.expire_worker("w")
    whole = await manager.stats()
    assert (whole.total, whole.ready, whole.delayed, whole.failures) == (3, 1, 2, 1)
    assert {state: n for state, n in whole.states.items() if n} == {
        State.RETRYING: 1,
        State.LOST: 1,
        State.PENDING: 1,
    }
    assert set(whole.states) == set(State)
    assert (await manager.stats(queues=["q2"])).total == 2
    assert (await manager.stats(tags=["x"])).total == 2
    assert (await manager.stats(tags=["x"], queues=["q2"])).total == 1
    assert (await manager.stats(tags=["x", "y"])).total == 0


async def look_in(manager: JobManager, worker: str, *queues: str) -> None:
    """A worker asks for jobs of these queues and gets none: they are paused meanwhile."""
    for queue in queues:
        await manager.pause(queue)
    assert await manager.claim(worker, queues=queues) == ()
    for queue in queues:
        await manager.resume(queue)


@suite.case("explain", "says which queues go first: older work, and work of higher priority")
async def goes_first(env: Env) -> None:
    manager = await env.manager()
    for n in range(3):
        await submit(manager, f"mail-{n}", queue="mail")
    await submit(manager, "urgent", queue="pages", priority=0)
    env.clock.advance(1)
    for n in range(2):
        await submit(manager, f"bulk-{n}", queue="bulk")
    env.clock.advance(1)
    await submit(manager, "later", queue="web")
    await look_in(manager, "w", "mail", "pages", "bulk", "web")

    async def told(job_id: str) -> list[tuple[Why, list[str]]]:
        reasons = (await manager.explain(job_id)).reasons
        return [
            (one.why, [before["queue"] for before in one.facts.get("before", ())])
            for one in reasons
        ]

    assert await told("urgent") == [(Why.READY, [])]
    assert await told("later") == [(Why.BEHIND, ["pages", "mail", "bulk"])]
    assert await told("bulk-0") == [(Why.BEHIND, ["pages", "mail"]), (Why.NO_ROOM, [])]
    (reason, _) = (await manager.explain("bulk-0")).reasons
    assert [(one["jobs"], one["higher"]) for one in reason.facts["before"]] == [
        (1, True),
        (3, False),
    ]
    assert "older" in reason.message
    assert "queue pages (critical priority, 1 due)" in reason.message
    assert await told("mail-1") == [(Why.BEHIND, ["pages"]), (Why.NO_ROOM, [])]
    await manager.pause("pages")
    assert await told("mail-1") == [(Why.NO_ROOM, [])]
    # A worker that has nothing else to do first would take it now.
    await look_in(manager, "w-2", "bulk", "mail")
    assert await told("bulk-1") == [(Why.BEHIND, ["mail"]), (Why.NO_ROOM, [])]
    await look_in(manager, "w-3", "bulk")
    assert await told("bulk-1") == [(Why.NO_ROOM, [])]


@suite.case("explain", "names queues whose first jobs are of one time in the order of their names")
async def goes_first_at_once(env: Env) -> None:
    manager = await env.manager()
    await manager.submit_many([JobSpec(type="t", queue=queue) for queue in ("z", "m", "a", "b")])
    await submit(manager, "later", queue="web", priority=3)
    await look_in(manager, "w", "a", "b", "m", "web", "z")
    (reason,) = (await manager.explain("later")).reasons
    assert [one["queue"] for one in reason.facts["before"]] == ["a", "b", "m", "z"]


@suite.case("explain", "tells a tenant of no other's queues")
async def goes_first_of_a_tenant(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "theirs", queue="secret", tenant="b")
    env.clock.advance(1)
    await submit(manager, "mine", tenant="a")
    await submit(manager, "mine-2", tenant="a")
    await look_in(manager, "w", "secret", "default")
    assert (await manager.explain("mine")).reasons[0].why is Why.BEHIND
    own = await manager.scoped("a").explain("mine")
    assert [one.why for one in own.reasons] == [Why.NO_ROOM]
    assert "secret" not in own.reasons[0].message


@suite.case("pause", "nothing is claimed from a paused queue; what runs goes on")
async def pause(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "running", queue="q")
    _, token = await take(manager, "running")
    await submit(manager, "waiting", queue="q")
    await manager.pause("q")
    await manager.pause("q")
    assert await manager.claim("w", queues=["q"]) == ()
    await manager.complete("running", token)
    assert await manager.resume("q")
    assert not await manager.resume("q")
    assert len(await manager.claim("w", queues=["q"])) == 1


@suite.case("explain", "says why a job is not running, for every reason there is")
async def explain(env: Env) -> None:
    manager = await env.manager()

    async def why(job_id: str) -> list[Why]:
        return [reason.why for reason in (await manager.explain(job_id)).reasons]

    await submit(manager, "first")
    assert await why("first") == [Why.NO_WORKER]
    await manager.claim("elsewhere", queues=["other"])
    assert await why("first") == [Why.NO_WORKER]
    await manager.claim("picky", types=["other"])
    assert await why("first") == [Why.NO_WORKER]
    await manager.claim("w", tags=["none"])
    await manager.claim(
        "general", types=["nothing yet", "t"], queues=["idle", "default"], tags=["x"]
    )
    assert await why("first") == [Why.NO_WORKER]
    job, token = await take(manager, "first")
    assert await why("first") == [Why.RUNNING]
    await submit(manager, "child", after=["first"])
    reason = (await manager.explain("child")).reasons[0]
    assert reason.why is Why.BLOCKED
    assert reason.facts["waits_for"] == ["first"]
    assert "first (running)" in reason.message
    await submit(manager, "later", delay_seconds=60)
    assert await why("later") == [Why.NOT_DUE]
    await submit(manager, "ready")
    assert await why("ready") == [Why.READY]
    await submit(manager, "behind")
    assert await why("behind") == [Why.NO_ROOM]
    await manager.pause("default")
    assert await why("behind") == [Why.PAUSED]
    assert await why("later") == [Why.NOT_DUE, Why.PAUSED]
    await manager.cancel(["first"])
    assert await why("first") == [Why.CANCELLING]
    env.clock.advance(40)
    assert await why("first") == [Why.LEASE_LAPSED]
    await manager.reap()
    assert await why("first") == [Why.ENDED]
    assert job.token == token
    env.clock.advance(100)
    assert await why("ready") == [Why.PAUSED, Why.NO_WORKER]


@suite.case("events", "a live reader gets what happens, in order, and stops when it is quiet")
async def live(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "before")
    seen: list[Event] = []

    async def read(after: str) -> None:
        seen.extend([event async for event in manager.follow(after=after, idle_seconds=0.5)])

    reader = asyncio.create_task(read(await manager.tail()))
    await asyncio.sleep(0.01)
    await submit(manager, "j")
    await finish(manager, "before", "j")
    await reader
    assert [(event.kind, event.job_id) for event in seen] == [
        ("enqueued", "j"),
        ("leased", "before"),
        ("leased", "j"),
        ("completed", "before"),
        ("completed", "j"),
    ]


@suite.case("events", "carry what analysis needs: wait and run times, sizes, category and code")
async def facts(env: Env) -> None:
    manager = await env.manager(Policy(max_attempts=2))
    await submit(manager, "j", payload="12345", delay_seconds=10, tags=["x"])
    env.clock.advance(12.5)
    _, token = await take(manager, "j")
    env.clock.advance(3.25)
    await manager.fail("j", token, "no", code="E1", retry_after=5)
    env.clock.advance(6)
    _, token = await take(manager, "j")
    await manager.complete("j", token, [1, 2])
    born, leased, retrying, again, done = await manager.events(job_id="j")
    assert (born.payload_bytes, born.before, born.after) == (7, None, State.PENDING)
    assert b'"x"' in (born.detail_json or b"")
    assert (leased.wait_us, leased.worker, leased.attempt) == (2_500_000, "w", 1)
    assert (retrying.run_us, retrying.category, retrying.code, retrying.message) == (
        3_250_000,
        "temporary",
        "E1",
        "no",
    )
    assert retrying.run_at == retrying.at + timedelta(seconds=5)
    assert again.wait_us == 1_000_000
    assert (done.result_bytes, done.failures, done.attempt) == (5, 1, 2)


@suite.case("events", "folding them gives the row, through every kind of change")
async def folding(env: Env) -> None:
    manager = await env.manager(Policy(max_attempts=3))
    for name in ("a", "b", "c", "d"):
        await submit(manager, name, lease_seconds=10)
    await submit(manager, "child", after=["a"])
    tokens = {job.id: job.token for job in await manager.claim("w", limit=9)}
    env.clock.advance(1)
    await manager.snooze("a", tokens["a"], seconds=2)
    await manager.release("b", tokens["b"])
    await manager.fail("c", tokens["c"], "no", retry_after=1)
    await manager.cancel(["d"])
    env.clock.advance(20)
    await manager.reap()
    _, token = await take(manager, "a")
    await manager.fail("a", token, PermanentError("no"))
    for name in ("a", "b", "c", "d", "child"):
        job = await manager.get(name)
        folded = history.fold(await manager.events(job_id=name))
        assert folded == {field: getattr(job, field) for field in folded}


@suite.case("explain", "a worker that asks for several queues in turn is seen on all of them")
async def several_queues(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "a", queue="a", type="a")
    for _ in range(3):
        for queue in ("b", "a", "c"):
            await manager.claim("w", queues=[queue], types=["none"])
    await manager.claim("w", queues=["b"])
    assert [reason.why for reason in (await manager.explain("a")).reasons] == [Why.READY]
