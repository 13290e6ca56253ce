"""What an operator asks of one job or queue: attempts, the jobs around it, who holds the slots, and why."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from headrace import errors
from headrace.limits import QueueLimits
from headrace.manager import Explanation, JobManager, Place, QueueExplanation, Why
from headrace.model import DEFAULT_QUEUE, Category, Dependency, DependencyKind, EventKind, State
from headrace.policy import Policy
from headrace.schedules import Every, Misfire
from headrace.spec import JobSpec
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import finish, submit, suite, take

POLICY = Policy(lease_seconds=10.0, max_attempts=None)


@suite.case(
    "attempts", "each claim is told once: who, how long, how it ended, and what was said late"
)
async def attempts(env: Env) -> None:
    manager = await env.manager(replace(POLICY, fenced=False))
    await submit(manager, "j")
    assert await manager.attempts("j") == ()
    begin = env.clock.now()
    env.clock.advance(1)
    (job,) = await manager.claim("w-1")
    env.clock.advance(2)
    await manager.keep_log(
        "j", str(job.token), [{"attempt": 1, "text": "E: x", "traceback": "there"}]
    )
    await manager.fail("j", job.token, "x", code="E", retry_after=0.0)
    (job,) = await manager.claim("w-2")
    (running,) = (await manager.attempts("j"))[1:]
    assert (running.ended_at, running.outcome, running.state) == (None, None, State.RUNNING)
    env.clock.advance(10)
    await manager.reap()
    await manager.complete("j", None, {"ok": 1})
    first, second = await manager.attempts("j")
    assert (first.attempt, first.worker, first.leased_at) == (
        1,
        "w-1",
        begin + timedelta(seconds=1),
    )
    assert (first.wait_us, first.run_us) == (1_000_000, 2_000_000)
    assert (first.outcome, first.category, first.code) == (
        EventKind.RETRYING,
        Category.TEMPORARY,
        "E",
    )
    assert (first.message, first.traceback, first.told_late) == ("x", "there", ())
    assert (second.worker, second.outcome, second.state) == ("w-2", EventKind.LOST, State.LOST)
    assert (second.told_late, second.run_us) == ((EventKind.COMPLETED,), 10_000_000)
    assert await manager.attempts("j", limit=1) == (second,)
    with raises(errors.JobNotFound):
        await manager.scoped("other").attempts("j")
    with raises(errors.InvalidLimit):
        await manager.attempts("j", limit=0)


@suite.case("graph", "dependencies, spawned jobs and redrives around a job, the nearest first")
async def graph(env: Env) -> None:
    manager = await env.manager(POLICY)
    for name, after in (("a", ()), ("b", ("a",)), ("c", ("b",)), ("d", ("c",))):
        await submit(manager, name, after=tuple(Dependency(one) for one in after))
    _, token = await take(manager, "a")
    await manager.spawn("a", token, [JobSpec(type="t", id="child")])
    found = await manager.graph("b")
    assert {node.id: node.steps for node in found.nodes} == {
        "b": 0,
        "a": 1,
        "c": 1,
        "child": 2,
        "d": 2,
    }
    assert {(one.before, one.after, one.kind) for one in found.links} == {
        ("a", "b", DependencyKind.AFTER),
        ("b", "c", DependencyKind.AFTER),
        ("c", "d", DependencyKind.AFTER),
        ("a", "child", "spawned"),
    }
    assert found.is_whole
    assert found.root == "b"
    near = await manager.graph("b", depth=1)
    assert [node.id for node in near.nodes] == ["b", "a", "c"]
    assert not near.is_whole
    few = await manager.graph("b", nodes_max=2)
    assert [(node.id, node.left_out) for node in few.nodes] == [("b", 1), ("a", 1)]
    assert len(few.links) == 1
    assert not few.is_whole


@suite.case("graph", "of a redriven job, of one whose parent was deleted, and of another tenant's")
async def graph_ends(env: Env) -> None:
    manager = await env.manager(POLICY)
    await submit(manager, "a")
    await submit(manager, "b", after=(Dependency("a"),))
    await finish(manager, "a")
    await manager.delete(["a"])
    await manager.cancel(["b"])
    (again,) = (await manager.redrive(["b"])).jobs
    found = await manager.graph("b")
    assert {node.id for node in found.nodes} == {"b", again.id}
    assert [(one.before, one.after, one.kind) for one in found.links] == [
        ("b", again.id, "redriven")
    ]
    assert found.is_whole
    assert {node.id for node in (await manager.graph(again.id)).nodes} == {"b", again.id}
    with raises(errors.JobNotFound):
        await manager.scoped("other").graph("b")
    with raises(errors.InvalidLimit):
        await manager.graph("b", depth=0)


async def whys(manager: JobManager, queue: str = DEFAULT_QUEUE) -> list[Why]:
    return [one.why for one in (await manager.explain_queue(queue)).reasons]


def _counts(explained: QueueExplanation) -> tuple[int, int, int, int]:
    return explained.ready, explained.delayed, explained.blocked, explained.running


@suite.case(
    "explain a queue", "nothing there, not due, nobody asks, paused, no room, other work first"
)
async def queue_explained(env: Env) -> None:
    manager = await env.manager(POLICY)
    assert await whys(manager, "q") == [Why.EMPTY]
    now = env.clock.now()
    await submit(manager, "later", queue="q", run_at=now + timedelta(seconds=50))
    explained = await manager.explain_queue("q")
    assert [(one.why, one.facts["run_at"]) for one in explained.reasons] == [
        (Why.NOT_DUE, now + timedelta(seconds=50))
    ]
    await submit(manager, "a", queue="q")
    env.clock.advance(7)
    explained = await manager.explain_queue("q")
    assert [one.why for one in explained.reasons] == [Why.NO_WORKER]
    assert (_counts(explained), explained.waited_seconds) == ((1, 1, 0, 0), 7.0)
    assert explained.told == "1 ready, the first for 7 s, 0 running"
    await manager.announce("other types", queues=["q"], types=["x"])
    await manager.announce("other tags", queues=["q"], tags=["x"])
    assert await whys(manager, "q") == [Why.NO_WORKER]
    await manager.announce("w", queues=["q"], slots=1, busy=0)
    assert await whys(manager, "q") == [Why.READY]
    env.clock.advance(6)
    await manager.announce("w", queues=["q"], slots=1, busy=1)
    assert await whys(manager, "q") == [Why.NO_ROOM]
    await manager.pause("q")
    assert await whys(manager, "q") == [Why.PAUSED]
    assert (await manager.explain_queue("q")).waited_seconds is None
    await manager.resume("q")
    env.clock.advance(61)
    await submit(manager, "first", queue="urgent", priority=0)
    await manager.announce("both")
    assert Why.BEHIND in await whys(manager, "q")


@suite.case("explain a queue", "a limit that is reached is told with who holds the slots")
async def queue_limited(env: Env) -> None:
    manager = await env.manager(POLICY)
    await manager.set_limits("q", QueueLimits(concurrency=2))
    for name in "abc":
        await submit(manager, name, queue="q")
    await manager.claim("w-1", queues=["q"])
    await manager.claim("w-2", queues=["q"])
    held = await manager.holders("q")
    assert [(one.id, one.worker) for one in held.jobs] == [("a", "w-1"), ("b", "w-2")]
    assert (dict(held.workers), held.at_least) == ({"w-1": 1, "w-2": 1}, False)
    explained = await manager.explain_queue("q")
    (reason,) = explained.reasons
    assert reason.why is Why.CONCURRENCY_LIMIT
    assert reason.message == "it is at the concurrency limit of 2 (held by w-1: 1, w-2: 1)"
    few = await manager.holders("q", limit=1)
    assert (few.told, few.at_least) == ("w-1: 1, …", True)
    assert (await manager.holders("other")).jobs == ()
    assert (await manager.scoped("other").holders("q")).jobs == ()
    with raises(errors.InvalidLimit):
        await manager.holders("q", limit=0)


@suite.case("explain", "the place in line counts what goes before in the queue")
async def place(env: Env) -> None:
    manager = await env.manager(POLICY)
    await submit(manager, "a", type="x")
    env.clock.advance(1)
    await submit(manager, "b", type="y")
    env.clock.advance(1)
    await submit(manager, "c", type="x")
    await submit(manager, "elsewhere", queue="q")
    await submit(manager, "later", delay_seconds=9)

    async def told(job_id: str) -> Place | None:
        explained: Explanation = await manager.explain(job_id)
        return explained.place

    assert [await told(one) for one in "abc"] == [Place(ahead=0), Place(ahead=1), Place(ahead=2)]
    assert await told("later") is None
    await submit(manager, "urgent", priority=0)
    assert await told("a") == Place(ahead=1)
    assert await told("urgent") == Place(ahead=0)
    await manager.pause(DEFAULT_QUEUE)
    assert await told("a") is None


@suite.case("schedules", "one can be run now, beside its ticks, as often as is asked for")
async def run_now(env: Env) -> None:
    manager = await env.manager()
    job = JobSpec(type="report", queue="q", tags=("x",), payload={"n": 1})
    before = await manager.schedule("s", Every(3600.0), job, misfire=Misfire.ALL)
    made = [await manager.run_schedule("s") for _ in range(2)]
    assert len({one.id for one in made}) == 2
    assert (made[0].type, made[0].queue, made[0].payload) == ("report", "q", {"n": 1})
    assert made[0].tags == ("schedule=s", "x")
    assert made[0].is_due(env.clock.now())
    assert (await manager.schedules()) == (before,)
    await manager.pause_schedule("s")
    await manager.run_schedule("s")
    with raises(errors.ScheduleNotFound):
        await manager.run_schedule("none")
    with raises(errors.ScheduleNotFound):
        await manager.scoped("other").run_schedule("s")


@suite.case("schedules", "the next ticks of all that go on, the soonest first")
async def upcoming(env: Env) -> None:
    manager = await env.manager()
    now = env.clock.now()
    for name, seconds in (("slow", 100.0), ("fast", 40.0), ("paused", 10.0)):
        await manager.schedule(name, Every(seconds, now), JobSpec(type="t"))
    await manager.pause_schedule("paused")
    ticks = await manager.upcoming(3)
    assert [(one.name, (one.at - now).total_seconds()) for one in ticks] == [
        ("fast", 40.0),
        ("fast", 80.0),
        ("slow", 100.0),
    ]
    assert [one.name for one in await manager.upcoming(2, name="paused")] == ["paused"] * 2
    assert await manager.scoped("other").upcoming() == ()
    with raises(errors.ScheduleNotFound):
        await manager.upcoming(name="none")
    with raises(errors.InvalidLimit):
        await manager.upcoming(0)
