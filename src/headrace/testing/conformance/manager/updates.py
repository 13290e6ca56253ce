"""Updates: what a user says of a job can be changed for as long as the job has not ended."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from msgspec.structs import replace

from headrace import history, lifecycle
from headrace.completion import Role
from headrace.contracts.presets import BACKEND_API
from headrace.errors import InvalidInput, JobCancelled, JobNotFound, JobTerminal, Refusal
from headrace.manager import JobManager
from headrace.model import Category, Dependency, DependencyKind, Event, EventKind, Job, State
from headrace.policy import Policy
from headrace.spec import JobSpec
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import finish, submit, suite, take, unchanged

URL = "https://example.org/done?secret=1"


async def _last_event(manager: JobManager, job_id: str) -> Event:
    *_, last = await manager.events(job_id=job_id, limit=1000)
    return last


async def _priorities(manager: JobManager, *job_ids: str) -> list[int]:
    return [(await manager.get(job_id)).priority for job_id in job_ids]


@suite.case("updates", "priority, tags, correlation id and callback url, one by one and together")
async def each_field(env: Env) -> None:
    manager = await env.manager()
    before = await submit(manager, "j", tags=["a", "b"])
    steps: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"priority": 1}, {}),
        ({"tags": {"k": 1}}, {"tags": ("k=1",)}),
        ({"add_tags": ["c"], "remove_tags": ["k=1", "nobody"]}, {"tags": ("c",)}),
        ({"correlation_id": "trace"}, {}),
        ({"callback_url": URL}, {}),
        ({"correlation_id": None, "callback_url": None, "priority": 4}, {}),
        ({"tags": []}, {"tags": ()}),
        ({"tags": ["z", "y"]}, {"tags": ("y", "z")}),
    ]
    wanted = before
    for given, seen in steps:
        env.clock.advance(1)
        changed = await manager.update("j", **given)
        wanted = replace(wanted, version=wanted.version + 1, **(seen or given))
        assert changed.job == wanted
        assert changed.freed == {}
        assert await manager.get("j") == wanted, "updated_at is the last change of state"
    found = await manager.find(tags=["y", "z"])
    assert [job.id for job in found.jobs] == ["j"]


@suite.case("updates", "one event each, that says what was changed, from what to what")
async def one_event(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j", tags=["a"], correlation_id="old")
    env.clock.advance(5)
    job = (
        await manager.update("j", priority=0, tags=["b"], correlation_id=None, callback_url=URL)
    ).job
    event = await _last_event(manager, "j")
    assert (event.kind, event.at, event.version) == (EventKind.UPDATED, env.clock.now(), 2)
    assert (event.before, event.after, event.priority) == (State.PENDING, State.PENDING, 0)
    assert msgspec.json.decode(event.detail_json or b"") == {
        "changed": ["tags", "priority", "correlation_id", "callback_url"],
        "tags": ["b"],
        "priority": 0,
        "correlation_id": None,
        "was": {"tags": ["a"], "priority": 2, "correlation_id": "old"},
    }
    folded = history.fold(await manager.events(job_id="j"))
    assert {name: getattr(job, name) for name in folded} == folded
    assert (folded["tags"], folded["priority"], folded["correlation_id"]) == (("b",), 0, None)


@suite.case("updates", "what is so already changes nothing, and writes no event")
async def nothing_new(env: Env) -> None:
    manager = await env.manager()
    job = await submit(manager, "j", tags=["a"], priority=1)
    before = await unchanged(manager)
    for given in (
        {"priority": 1},
        {"tags": ["a"]},
        {"add_tags": ["a"], "remove_tags": ["b"]},
        {"correlation_id": None, "callback_url": None},
    ):
        assert (await manager.update("j", **given)).job == job
    assert await unchanged(manager) == before


@suite.case("updates", "in every state that has not ended, and in no other")
async def every_state(env: Env) -> None:
    manager = await env.manager(Policy(max_attempts=2, lease_seconds=10.0))
    await submit(manager, "parent")
    await submit(manager, "blocked", after=["parent"])
    await submit(manager, "delayed", delay_seconds=100.0)
    for name in ("running", "cancelling", "retrying", "lost"):
        await submit(manager, name)
        _, token = await take(manager, name)
        if name == "cancelling":
            await manager.cancel([name])
        elif name == "retrying":
            await manager.fail(name, token, "no", retry_after=100.0)
        elif name == "lost":
            await manager.expire_worker("w")
    for name in ("blocked", "delayed", "lost", "retrying"):
        state = (await manager.get(name)).state
        job = (await manager.update(name, priority=1, add_tags=["new"])).job
        assert (job.state, job.priority, job.tags) == (state, 1, ("new",))
    for end in ("completed", "cancelled", "failed"):
        await submit(manager, end)
        _, token = await take(manager, end)
        if end == "completed":
            await manager.complete(end, token)
        elif end == "cancelled":
            await manager.stop(end, token)
        else:
            await manager.fail(end, token, "no", category=Category.PERMANENT)
        before = await unchanged(manager)
        with raises(JobTerminal, JobCancelled):
            await manager.update(end, priority=0)
        assert await unchanged(manager) == before


@suite.case("updates", "whoever runs the job goes on: its lease, its notes, its report")
async def while_leased(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j", tags=["a"])
    job, token = await take(manager, "j")
    await manager.progress("j", token, 0.5)
    updated = (await manager.update("j", priority=0, tags=["b"])).job
    assert (updated.token, updated.lease_until, updated.progress) == (token, job.lease_until, 0.5)
    assert job.lease is not None
    assert (await manager.heartbeat([job.lease])).refused == {}
    await manager.checkpoint("j", token, {"page": 2})
    await manager.fail("j", token, "no", retry_after=0)
    again, token = await take(manager, "j")
    assert (again.checkpoint, again.tags, again.priority) == ({"page": 2}, ("b",), 0)
    await manager.complete("j", token)


@suite.case(
    "updates", "claims go by the new priority and tags at once, and waiting is not cut short"
)
async def claims_follow(env: Env) -> None:
    manager = await env.manager()
    for name in ("a", "b", "c"):
        await submit(manager, name)
    env.clock.advance(60)
    await manager.update("c", priority=1)
    await manager.update("b", tags=["only"])
    assert [job.id for job in await manager.claim("w", tags=["only"])] == ["b"]
    assert [job.id for job in await manager.claim("w", limit=2)] == ["c", "a"]
    waited = {event.job_id: event.wait_us for event in await manager.events(limit=100)}
    assert waited == {"a": 60_000_000, "b": 60_000_000, "c": 60_000_000}


@suite.case("updates", "a job made more urgent takes all that waits for it along, however far down")
async def priority_flows_down(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "top", priority=3)
    await submit(manager, "next", priority=3, after=["top"])
    await submit(manager, "urgent", priority=0, after=["next"])
    any_of = [Dependency("next", DependencyKind.AFTER_ANY), Dependency("top")]
    await submit(manager, "last", priority=4, after=any_of)
    await submit(manager, "beside", priority=4)
    assert await _priorities(manager, "next", "urgent", "last") == [3, 0, 3]
    await manager.update("top", priority=1)
    assert await _priorities(manager, "top", "next", "urgent", "last", "beside") == [1, 1, 0, 1, 4]
    await manager.update("top", priority=4)
    assert await _priorities(manager, "top", "next", "last") == [4, 1, 1], "what was given stays"


@suite.case("updates", "a job stays as urgent as the most urgent job it depends on")
async def as_urgent_as_parents(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "one", priority=1)
    await submit(manager, "other", priority=3)
    await submit(manager, "child", priority=0, after=["one", "other"])
    assert (await manager.update("child", priority=4)).job.priority == 1
    assert (await manager.update("child", priority=0)).job.priority == 0


@suite.case("updates", "of two at once both count, and beside a worker neither is lost")
async def races(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j")

    async def run() -> None:
        for _ in range(3):
            for job in await manager.claim("w"):
                await manager.release(job.id, job.token)

    tags = [f"t{n}" for n in range(10)]
    await asyncio.gather(run(), *(manager.update("j", add_tags=[tag]) for tag in tags), run())
    job = await manager.get("j")
    assert job.tags == tuple(tags)
    events = await manager.events(job_id="j", limit=1000)
    assert [event.version for event in events] == list(range(1, job.version + 1))


@suite.case("updates", "another tenant's job answers as one that is not there")
async def other_tenants(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j", tenant="acme")
    before = await unchanged(manager)
    for tenant in ("other", "default"):
        with raises(JobNotFound):
            await manager.scoped(tenant).update("j", priority=0)
    with raises(JobNotFound):
        await manager.update("nobody", priority=0)
    assert await unchanged(manager) == before
    assert (await manager.scoped("acme").update("j", priority=0)).job.priority == 0


@suite.case("updates", "what is wrong is refused, and nothing is changed")
async def bad_updates(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j", tags=["a"])
    before = await unchanged(manager)
    bad: list[dict[str, Any]] = [
        {},
        {"priority": 5},
        {"priority": "urgent"},
        {"priority": None},
        {"priority": True},
        {"tags": "text"},
        {"tags": None},
        {"tags": [7]},
        {"add_tags": [""]},
        {"remove_tags": "a"},
        {"tags": ["a"], "add_tags": ["b"]},
        {"add_tags": ["b"], "remove_tags": ["b"]},
        {"add_tags": [f"t{n}" for n in range(1000)]},
        {"correlation_id": ""},
        {"correlation_id": b"x"},
        {"callback_url": "ftp://example.org"},
        {"callback_url": "\ud800"},
        {"callback_url": 7},
    ]
    for given in bad:
        with raises(InvalidInput):
            await manager.update("j", **given)
    for job_id in ("", None, b"j", "\ud800"):
        with raises(InvalidInput):
            await manager.update(job_id, priority=1)  # type: ignore[arg-type]  # the point of the case
    with raises(InvalidInput):
        await manager.change("j", lambda _: lifecycle.Update(priority=0))
    assert await unchanged(manager) == before


@suite.case("updates", "a callback url that comes later is told, one that is taken back is not")
async def callbacks(env: Env) -> None:
    manager = await env.manager()

    async def webhooks(of: str) -> list[Job]:
        return list((await manager.find(tags=[Role.WEBHOOK.of(of)])).jobs)

    await submit(manager, "late")
    urls = [f"{URL}&n={n}" for n in range(5)]
    await asyncio.gather(*(manager.update("late", callback_url=url) for url in urls))
    (webhook,) = await webhooks("late")
    assert (webhook.state, webhook.payload["job_id"]) == (State.BLOCKED, "late")
    await submit(manager, "early", callback_url=URL)
    await manager.update("early", callback_url=urls[0])
    await manager.update("early", callback_url=None)
    await manager.update("early", callback_url=urls[1])
    assert len(await webhooks("early")) == 1
    await finish(manager, "early", "late")
    assert (await manager.get(webhook.id)).state is State.PENDING
    with raises(Refusal):
        await manager.update("late", callback_url=None)


@suite.case("updates", "where the policy does not deliver, a callback url is only kept")
async def not_delivered(env: Env) -> None:
    manager = await env.manager(BACKEND_API)
    await submit(manager, "j")
    assert (await manager.update("j", callback_url=URL)).job.callback_url == URL
    assert (await manager.stats()).total == 1


@suite.case("updates", "tags that tie a job to others are neither taken nor given")
async def ties(env: Env) -> None:
    manager = await env.manager()
    batch = await manager.submit_batch([JobSpec(type="t")], JobSpec(type="done"))
    hooks = [JobSpec(type="page", id="h", tags=["mine"])]
    await submit(manager, "j", on_failure=hooks)
    (member,) = batch.job_ids
    for job_id, tie in ((member, Role.MEMBER.of(batch.id)), ("h", Role.ON_FAILURE.of("j"))):
        assert tie in (await manager.update(job_id, tags=["other"])).job.tags
        with raises(InvalidInput):
            await manager.update(job_id, remove_tags=[tie])
    with raises(InvalidInput):
        await manager.update("j", add_tags=[Role.WEBHOOK.of("h")])
    await finish(manager, "j")
    hook_call = await manager.hook_call(await manager.get("h"))
    assert hook_call is not None
    assert not hook_call.wanted
