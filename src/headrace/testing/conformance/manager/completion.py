"""Completion: webhooks, hooks and batches as jobs that wait for others to end."""

from __future__ import annotations

import asyncio
from collections import Counter
from unittest import mock

from headrace import errors, lifecycle
from headrace.completion import JOIN_TYPE, WEBHOOK_TYPE, Role
from headrace.contracts.presets import BACKEND_API, PRESETS
from headrace.errors import PermanentError
from headrace.manager import JobManager
from headrace.model import Dependency, DependencyKind, Job, State
from headrace.policy import WEBHOOKS_QUEUE, IdSource, OnDuplicateId, Policies, Policy
from headrace.spec import JobSpec
from headrace.stores.base import Clash, Commit, Inserted, Insertion
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.dependencies import end, end_held, quiet
from headrace.testing.conformance.manager.suite import finish, submit, suite, take, unchanged

URL = "https://example.org/done"
ENDS = (State.COMPLETED, State.FAILED, State.DEAD, State.CANCELLED, State.ABANDONED)


async def _with_role(manager: JobManager, role: Role, of: str) -> list[Job]:
    return list((await manager.find(tags=[role.of(of)], limit=1000)).jobs)


async def _the(manager: JobManager, role: Role, of: str) -> Job:
    (only,) = await _with_role(manager, role, of)
    return only


async def _run(manager: JobManager, job: Job) -> str:
    """What a worker does with a claimed follow-up: the note, or the word that its handler ran."""
    hook_call = await manager.hook_call(job)
    assert hook_call is not None
    result = "ran" if hook_call.wanted else hook_call.note
    await manager.complete(job.id, job.token, result)
    return result


# --- webhooks ------------------------------------------------------------------------------------


@suite.case("webhooks", "a job with a callback url brings the job that tells of its end")
async def brings_webhook(env: Env) -> None:
    manager = await env.manager()
    answer = await manager.submit(
        JobSpec(type="t", id="j", tenant="acme", callback_url=URL, correlation_id="trace-1")
    )
    assert [job.id for job in answer.jobs] == ["j"]
    webhook = await _the(manager, Role.WEBHOOK, "j")
    assert (webhook.type, webhook.queue, webhook.tenant) == (WEBHOOK_TYPE, WEBHOOKS_QUEUE, "acme")
    assert webhook.state is State.BLOCKED
    assert (webhook.expires_at, webhook.correlation_id) == (None, "trace-1")
    payload = webhook.payload
    assert (payload["job_id"], payload["url"]) == ("j", URL)
    assert payload["message_id"] not in ("j", None)
    assert webhook.max_attempts == 10


@suite.case("webhooks", "its job is released once, however the job ended, and runs once")
async def released_once(env: Env) -> None:
    manager = await env.manager(Policy(max_attempts=1))
    for how in ENDS:
        await submit(manager, f"j-{how}", callback_url=URL)
        await end(manager, f"j-{how}", how)
        webhook = await _the(manager, Role.WEBHOOK, f"j-{how}")
        assert webhook.state is State.PENDING, how
        await finish(manager, webhook.id)
        kinds = [event.kind for event in await manager.events(job_id=webhook.id)]
        assert kinds == ["enqueued", "unblocked", "leased", "completed"]
    assert await manager.sweep() == 0


@suite.case("webhooks", "a job that outlived its lifetime is told of, too")
async def told_of_lifetime(env: Env) -> None:
    manager = await env.manager()
    hooks = [JobSpec(type="page", id="h")]
    await submit(manager, "j", callback_url=URL, lifetime_seconds=60.0, on_failure=hooks)
    env.clock.advance(60 * 60 * 24 * 365)
    await manager.maintain()
    assert (await manager.get("j")).state is State.DEAD
    assert (await _the(manager, Role.WEBHOOK, "j")).state is State.PENDING
    assert (await manager.get("h")).state is State.PENDING


@suite.case("webhooks", "one for a key, one for an id, however often it is submitted")
async def once_per_job(env: Env) -> None:
    manager = await env.manager(Policy(on_duplicate_id=OnDuplicateId.EXISTING))
    for job_id, key in ((None, "k"), ("j", None), ("i", "l")):
        hooks = [JobSpec(type="h")]
        spec = JobSpec(type="t", id=job_id, key=key, callback_url=URL, on_success=hooks)
        first = await manager.submit(spec)
        again = await asyncio.gather(*(manager.submit(spec) for _ in range(5)))
        assert {answer.created for answer in again} == {(False,)}
        assert len(await _with_role(manager, Role.WEBHOOK, first.job.id)) == 1
        assert len(await _with_role(manager, Role.ON_SUCCESS, first.job.id)) == 1
    assert (await manager.stats()).total == 9


@suite.case("webhooks", "none where the policy does not deliver, as most specifications' do not")
async def not_delivered(env: Env) -> None:
    delivering = [name for name, preset in PRESETS.items() if preset.deliver_callbacks]
    assert delivering == ["default", "job_model"]
    manager = await env.manager(BACKEND_API)
    await submit(manager, "j", callback_url=URL)
    assert (await manager.stats()).total == 1


@suite.case("webhooks", "urls that no request can be sent to are refused, and nothing is stored")
async def bad_urls(env: Env) -> None:
    manager = await env.manager()
    before = await unchanged(manager)
    for bad in (
        "ftp://example.org/",
        "//example.org/x",
        "https://",
        "https:///path",
        "https://user@example.org/",
        "https://user:secret@example.org/",
        "https://example.org:0/",
        "https://example.org:99999/",
        "https://example.org:port/",
        "https://exa mple.org/",
        "https://example.org/a b",
        "https://example.org/\n",
        "https://example.org\\@evil.example/",
        "https://bücher.example/",
        "https://[::1/",
        "x" * 3000,
    ):
        with raises(errors.InvalidInput) as caught:
            await submit(manager, "j", callback_url=bad)
        assert "secret" not in str(caught.error)
    assert await unchanged(manager) == before


@suite.case("webhooks", "a redrive brings its own, and its hooks; the old ones stay as they ended")
async def redriven(env: Env) -> None:
    manager = await env.manager(Policy(max_attempts=1))
    hooks = {"on_success": [JobSpec(type="good")], "on_failure": [JobSpec(type="bad")]}
    await submit(manager, "old", callback_url=URL, **hooks)
    await end(manager, "old", State.DEAD)
    await manager.reset_running()
    new = (await manager.redrive(["old"])).job
    again = await manager.redrive(["old"])
    assert (again.job.id, again.created) == (new.id, (False,))
    assert (await _the(manager, Role.WEBHOOK, new.id)).payload["job_id"] == new.id
    assert (await _the(manager, Role.ON_SUCCESS, "old")).state is State.DEAD
    success = await _the(manager, Role.ON_SUCCESS, new.id)
    failure = await _the(manager, Role.ON_FAILURE, new.id)
    assert {success.state, failure.state} == {State.BLOCKED}
    assert success.previous_id == (await _the(manager, Role.ON_SUCCESS, "old")).id
    await finish(manager, new.id)
    claimed = {job.id: job for job in await manager.claim("w", limit=100)}
    assert await _run(manager, claimed[success.id]) == "ran"
    assert (await _run(manager, claimed[failure.id])).startswith("not needed")


@suite.case("webhooks", "a join waits for what was spawned, not for what tells of it")
async def not_spawned(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "mother")
    await submit(manager, "join", after=[Dependency("mother", DependencyKind.FAN_IN)])
    _, token = await take(manager, "mother")
    spec = JobSpec(type="t", id="c", callback_url=URL, on_failure=[JobSpec(type="h")])
    await manager.spawn("mother", token, [spec])
    await manager.complete("mother", token)
    await finish(manager, "c")
    assert (await _the(manager, Role.WEBHOOK, "c")).state is State.PENDING
    assert (await manager.get("join")).state is State.PENDING


# --- hooks ---------------------------------------------------------------------------------------


@suite.case("hooks", "after each way to end, exactly one of on_success and on_failure runs")
async def one_of_two(env: Env) -> None:
    manager = await env.manager(Policy(max_attempts=1))
    for how in ENDS:
        good = JobSpec(type="good", id=f"good-{how}", payload={"to": "ada"})
        bad = JobSpec(type="bad", id=f"bad-{how}", payload=[1])
        await submit(manager, f"j-{how}", on_success=[good], on_failure=[bad])
        await end(manager, f"j-{how}", how)
        claimed = {job.id: job for job in await manager.claim("w", limit=100)}
        assert f"bad-{how}" in claimed
        ran = [job_id for job_id, job in claimed.items() if await _run(manager, job) == "ran"]
        assert ran == ([f"good-{how}"] if how is State.COMPLETED else [f"bad-{how}"])
        assert (await manager.get(f"good-{how}")).is_terminal
        not_needed = (await manager.get(f"bad-{how}")).result
        assert (not_needed == f"not needed: job j-{how} is completed") is (how is State.COMPLETED)


@suite.case("hooks", "their handler is told of the job: id, state, result or error")
async def told(env: Env) -> None:
    manager = await env.manager()
    hook = {"on_success": [JobSpec(type="h", payload={"to": "ada"})]}
    await submit(manager, "a", **hook)
    _, token = await take(manager, "a")
    await manager.complete("a", token, {"sum": 3})
    (job,) = await manager.claim("w")
    hook_call = await manager.hook_call(job)
    assert hook_call is not None
    assert hook_call.wanted
    about = hook_call.about["job"]
    assert (about["id"], about["state"], about["result"], about["error"]) == (
        "a",
        "completed",
        {"sum": 3},
        None,
    )
    assert hook_call.payload(job.payload) == {"to": "ada", "job": about}
    assert hook_call.payload(None) == {"job": about}
    assert hook_call.payload([1]) == {"payload": [1], "job": about}
    await manager.complete(job.id, job.token)
    await submit(manager, "b", on_failure=[JobSpec(type="h")])
    _, token = await take(manager, "b")
    await manager.fail("b", token, PermanentError("no such user", code="E1"))
    (job,) = await manager.claim("w")
    hook_call = await manager.hook_call(job)
    assert hook_call is not None
    assert hook_call.about["job"]["error"] == {
        "message": "no such user",
        "category": "permanent",
        "code": "E1",
    }
    assert await manager.hook_call(await manager.get("a")) is None


@suite.case("hooks", "know how the job ended when it is deleted, and when it completes late")
async def lasting_outcome(env: Env) -> None:
    manager = await env.manager(Policy(fenced=False))
    for name in ("gone", "late"):
        hooks = [JobSpec(type="h", id=f"h-{name}")]
        await submit(manager, name, on_failure=hooks, on_success=hooks_named(f"s-{name}"))
        await end(manager, name, State.ABANDONED)
    await manager.delete(["gone"])
    await manager.complete("late", None, "after all")
    assert (await manager.get("late")).state is State.COMPLETED
    for job in await manager.claim("w", limit=10):
        hook_call = await manager.hook_call(job)
        assert hook_call is not None
        assert (hook_call.wanted, hook_call.about["job"]["state"]) == (True, "abandoned")
    assert (await manager.get("s-late")).state is State.CANCELLED


def hooks_named(*names: str) -> list[JobSpec]:
    return [JobSpec(type="h", id=name) for name in names]


@suite.case(
    "hooks", "a redriven hook knows what it was for, and is not run for an end it is not for"
)
async def redriven_hook(env: Env) -> None:
    manager = await env.manager(Policy(max_attempts=1))
    await submit(manager, "j", on_success=hooks_named("s"), on_failure=hooks_named("f"))
    await end(manager, "j", State.DEAD)
    await end(manager, "f", State.DEAD)
    submitted = await manager.redrive(["s", "f"])
    claimed = {job.previous_id: job for job in await manager.claim("w", limit=10)}
    assert len(submitted.jobs) == len(claimed) == 2
    assert (await _run(manager, claimed["s"])).startswith("not needed")
    assert await _run(manager, claimed["f"]) == "ran"


@suite.case("hooks", "of hooks: a hook may have hooks and a callback url")
async def nested(env: Env) -> None:
    manager = await env.manager(Policy(max_attempts=1))
    inner = JobSpec(type="h", id="inner", callback_url=URL)
    outer = JobSpec(type="h", id="outer", on_failure=[inner])
    await submit(manager, "j", on_success=[outer])
    await finish(manager, "j")
    await end(manager, "outer", State.DEAD)
    await finish(manager, "inner")
    assert (await _the(manager, Role.WEBHOOK, "inner")).state is State.PENDING


@suite.case("hooks", "are stored with their job or not at all, and one that cannot be is refused")
async def refused_hooks(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "taken")
    before = await unchanged(manager)
    for hook, error in (
        (JobSpec(type="h", after=["taken"]), errors.InvalidInput),
        (JobSpec(type="h", key="k"), errors.InvalidInput),
        (JobSpec(type=""), errors.InvalidName),
        (JobSpec(type="h", id="taken"), errors.DuplicateJob),
        (JobSpec(type="h", id="j"), errors.DuplicateJob),
        (JobSpec(type="h", tenant="other"), errors.InvalidDependency),
        ("h", errors.InvalidInput),
    ):
        for name in ("on_success", "on_failure"):
            with raises(error):
                await submit(manager, "j", **{name: [hook]})
    for wrong in (JobSpec(type="h"), "h", None):
        with raises(errors.InvalidInput):
            await submit(manager, "j", on_success=wrong)
    with raises(errors.InvalidBatch) as caught:
        await manager.submit_many(
            [JobSpec(type="t"), JobSpec(type="t", on_success=[JobSpec(type="")])]
        )
    assert isinstance(caught.error, errors.InvalidBatch)
    assert caught.error.index == 1
    assert await unchanged(manager) == before


@suite.case("hooks", "a tag that names another tenant's job tells nothing of it")
async def foreign(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "secret", tenant="other")
    _, token = await take(manager, "secret")
    await manager.complete("secret", token, "hidden")
    await submit(manager, "spy", tags=[Role.ON_SUCCESS.of("secret")])
    (job,) = await manager.claim("w")
    hook_call = await manager.hook_call(job)
    assert hook_call is not None
    assert hook_call.about == {"job": {"id": "secret", "state": None}}


@suite.case("hooks", "a crash between a job's end and their release leaves nothing stuck")
async def crash(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j", callback_url=URL, on_success=hooks_named("s"))
    job, token = await take(manager, "j")
    change = lifecycle.apply(job, lifecycle.Complete(token=token), env.clock.now())
    await manager.store.commit(Commit(changes=[change]))
    assert (await manager.get("s")).state is State.BLOCKED
    assert await manager.sweep() == 2
    assert (await manager.get("s")).state is State.PENDING
    assert (await _the(manager, Role.WEBHOOK, "j")).state is State.PENDING


# --- batches -------------------------------------------------------------------------------------


def members(count: int) -> list[JobSpec]:
    return [JobSpec(type="row", payload=n) for n in range(count)]


@suite.case("batches", "the callback runs once, when the last of them has ended, however they end")
async def callback_last(env: Env) -> None:
    manager = await env.manager(Policy(max_attempts=1))
    specs = [JobSpec(type="row", id=f"m-{how}", tags=["mine"]) for how in ENDS]
    batch = await manager.submit_batch(specs, JobSpec(type="sum", payload={"to": "ada"}))
    assert batch.job_ids == tuple(f"m-{how}" for how in ENDS)
    assert (await manager.get("m-failed")).tags == (Role.MEMBER.of(batch.id), "mine")
    assert batch.callback_id is not None
    held = {job.id: job for job in await manager.claim("w", limit=100)}
    for ended, how in enumerate(ENDS):
        progress = await manager.batch(batch.id)
        assert (progress.total, progress.ended, progress.running) == (5, ended, 5 - ended)
        assert not progress.done
        assert (await manager.get(batch.callback_id)).state is State.BLOCKED
        await end_held(manager, f"m-{how}", held[f"m-{how}"].token, how)
    (job,) = await manager.claim("w", limit=100)
    hook_call = await manager.hook_call(job)
    assert hook_call is not None
    assert hook_call.payload(job.payload) == {
        "to": "ada",
        "batch": {
            "id": batch.id,
            "total": 5,
            "completed": 1,
            "failed": 1,
            "dead": 1,
            "cancelled": 1,
            "abandoned": 1,
        },
    }
    await manager.complete(job.id, job.token)
    progress = await manager.batch(batch.id)
    assert (progress.done, progress.fraction, progress.completed) == (True, 1.0, 1)
    kinds = [event.kind for event in await manager.events(job_id=job.id)]
    assert kinds == ["enqueued", "unblocked", "leased", "completed"]


@suite.case("batches", "jobs that end at the same time release the callback once")
async def together(env: Env) -> None:
    manager = await env.manager()
    batch = await manager.submit_batch(members(30), JobSpec(type="sum"))
    rows = await manager.claim("w", limit=30)
    await asyncio.gather(*(manager.complete(row.id, row.token) for row in rows))
    assert batch.callback_id is not None
    kinds = [event.kind for event in await manager.events(job_id=batch.callback_id)]
    assert kinds == ["enqueued", "unblocked"]


@suite.case("batches", "2,500 jobs: through three joins to one callback")
async def large(env: Env) -> None:
    manager = await env.manager()
    batch = await manager.submit_batch(members(2500), JobSpec(type="sum"))
    assert len(set(batch.job_ids)) == 2500
    stats = await manager.stats()
    assert stats.total == 2500 + 3 + 1
    ran: Counter[str] = Counter()
    while claimed := await manager.claim("w", limit=500):
        for job in claimed:
            hook_call = await manager.hook_call(job)
            if job.type == JOIN_TYPE:
                assert hook_call is not None
                assert not hook_call.wanted
            if job.type == "sum":
                assert hook_call is not None
                assert hook_call.about["batch"]["completed"] == 2500
                assert (await manager.batch(batch.id)).done
        ran.update(job.type for job in claimed)
        rows = [(job.id, job.token) for job in claimed]
        await asyncio.gather(*(manager.complete(*row) for row in rows))
    assert ran == {"row": 2500, JOIN_TYPE: 3, "sum": 1}
    assert (await manager.get(batch.callback_id or "")).state is State.COMPLETED


@suite.case("batches", "the callback has waited for all when a crash kept them from being judged")
async def unjudged(env: Env) -> None:
    manager = await env.manager()
    batch = await manager.submit_batch(members(3), JobSpec(type="sum"))
    rows = await manager.claim("w", limit=3)

    async def broken(_: object) -> None:
        raise errors.StoreUnavailable("gone for a moment; nothing was written")

    with mock.patch.object(manager.store, "joins", broken), quiet():
        for row in rows:
            await manager.complete(row.id, row.token)
    assert batch.callback_id is not None
    assert (await manager.get(batch.callback_id)).state is State.BLOCKED
    assert await manager.sweep() == 1
    assert (await manager.get(batch.callback_id)).state is State.PENDING


@suite.case("batches", "repeated under their id they are the same batch, also after they ended")
async def repeated(env: Env) -> None:
    manager = await env.manager()
    specs = [JobSpec(type="row", id="named", callback_url=URL), *members(4)]
    first = await manager.submit_batch(specs, JobSpec(type="sum"), batch_id="b")
    before = await unchanged(manager)
    assert first.created == 5
    answers = await asyncio.gather(
        *(manager.submit_batch(specs, JobSpec(type="sum"), batch_id="b") for _ in range(3))
    )
    await finish(manager, *first.job_ids)
    env.clock.advance(60 * 60 * 24 * 20)
    answers.append(await manager.submit_batch(specs, JobSpec(type="sum"), batch_id="b"))
    for again in answers:
        assert (again.job_ids, again.callback_id, again.created) == (
            first.job_ids,
            first.callback_id,
            0,
        )
    assert (await unchanged(manager))[0] == before[0]
    assert (await manager.get(first.callback_id or "")).state is State.PENDING


@suite.case("batches", "one that was interrupted half way is completed by repeating it")
async def interrupted(env: Env) -> None:
    manager = await env.manager()
    insert = manager.store.insert
    left = 2

    async def dies(insertion: Insertion) -> Inserted | Clash:
        nonlocal left
        if not left:
            raise errors.StoreUnavailable("the process died here")
        left -= 1
        return await insert(insertion)

    with (
        mock.patch("headrace.manager.batches.PIECE_JOBS", 10),
        mock.patch("headrace.graph.DEPENDENCIES_MAX", 5),
    ):
        with mock.patch.object(manager.store, "insert", dies), raises(errors.StoreUnavailable):
            await manager.submit_batch(members(25), JobSpec(type="sum"), batch_id="b")
        assert (await manager.batch("b")).total == 20
        rows = await manager.claim("w", limit=15)
        for row in rows:
            await manager.complete(row.id, row.token)
        batch = await manager.submit_batch(members(25), JobSpec(type="sum"), batch_id="b")
    assert (len(set(batch.job_ids)), batch.created) == (25, 5)
    ran: Counter[str] = Counter()
    while claimed := await manager.claim("w", limit=100):
        for job in claimed:
            if job.type == "sum":
                assert (await manager.batch("b")).done
            await manager.complete(job.id, job.token)
        ran.update(job.type for job in claimed)
    assert ran == {"row": 10, JOIN_TYPE: 5, "sum": 1}


@suite.case("batches", "with one bad job nothing of them is stored, whichever piece it stands in")
async def refused_batches(env: Env) -> None:
    manager = await env.manager()
    before = await unchanged(manager)
    callback = JobSpec(type="sum")
    bad = [
        (23, JobSpec(type="")),
        (0, JobSpec(type="row", key="own")),
        (24, "row"),
    ]
    with mock.patch("headrace.manager.batches.PIECE_JOBS", 10):
        for index, one in bad:
            specs: list[JobSpec] = members(25)
            specs[index] = one  # type: ignore[call-overload]  # the point of the case
            with raises(errors.InvalidBatch) as caught:
                await manager.submit_batch(specs, callback, batch_id="b")
            assert isinstance(caught.error, errors.InvalidBatch)
            assert caught.error.index == index
        with raises(errors.DuplicateJob):
            twice = [JobSpec(type="row", id=f"{n % 20}") for n in range(25)]
            await manager.submit_batch(twice, callback, batch_id="b")
        with raises(errors.InvalidInput):
            await manager.submit_batch(members(25), callback)
        for wrong in (JobSpec(type="sum", key="k"), JobSpec(type="sum", after=["x"]), "sum"):
            with raises(errors.InvalidInput):
                await manager.submit_batch(members(2), wrong)  # type: ignore[arg-type]  # as above
    assert await unchanged(manager) == before


@suite.case("batches", "without a callback, without a job, and one that is not there")
async def odd_batches(env: Env) -> None:
    manager = await env.manager()
    plain = await manager.submit_batch(members(3))
    assert (plain.callback_id, (await manager.batch(plain.id)).waiting) == (None, 3)
    empty = await manager.submit_batch([], JobSpec(type="sum"))
    (job,) = [one for one in await manager.claim("w", limit=9) if one.id == empty.callback_id]
    hook_call = await manager.hook_call(job)
    assert hook_call is not None
    assert hook_call.about["batch"]["total"] == 0
    assert (await manager.batch(plain.id)).running == 3
    with raises(errors.BatchNotFound):
        await manager.batch("nowhere")
    with raises(errors.BatchNotFound):
        await manager.scoped("other").batch(plain.id)


@suite.case("batches", "belong to their tenant, and keep to their queue's rule for ids")
async def tenants(env: Env) -> None:
    manager = await env.manager(
        Policies(
            queues={"server": Policy(ids=IdSource.SERVER), "client": Policy(ids=IdSource.CLIENT)}
        )
    )
    specs = [JobSpec(type="row", tenant="acme", queue="server") for _ in range(3)]
    batch = await manager.submit_batch(specs, JobSpec(type="sum", queue="server"), batch_id="b")
    assert (await manager.get(batch.callback_id or "")).tenant == "acme"
    other = await manager.scoped("other").submit_batch(members(2), batch_id="b")
    assert other.created == 2
    assert (await manager.scoped("acme").batch("b")).total == 3
    with (
        mock.patch("headrace.graph.DEPENDENCIES_MAX", 2),
        mock.patch("headrace.manager.batches.MEMBERS_MAX", 4),
    ):
        named = [JobSpec(type="row", id=f"c{n}", queue="client") for n in range(4)]
        callback = JobSpec(type="sum", id="callback", queue="client")
        assert (await manager.submit_batch(named, callback)).callback_id == "callback"
        with raises(errors.InvalidLimit):
            await manager.submit_batch(members(5), batch_id="c")
