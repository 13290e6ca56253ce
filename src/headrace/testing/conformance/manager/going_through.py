"""Going through what there is: all pages of a find, a batch to its end, a job as it goes on."""

from __future__ import annotations

import asyncio

from headrace import errors
from headrace.model import Job, State
from headrace.spec import JobSpec
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import submit, suite, take


@suite.case("find", "all there are, page after page, in either order, and as many as asked for")
async def every_page(env: Env) -> None:
    manager = await env.manager()
    await manager.submit_many([JobSpec(type="t", payload=n) for n in range(2345)])
    await submit(manager, "other", queue="q")
    found = [job async for job in manager.find(queues=["default"])]
    assert [job.payload for job in found] == list(range(2345))
    newest = [job.payload async for job in manager.find(queues=["default"], newest_first=True)]
    assert newest == list(reversed(range(2345)))
    assert len([job async for job in manager.find(limit=1001)]) == 1001
    page = await manager.find(limit=7)
    assert [job.payload for job in page] == list(range(7))
    assert len(page) == 7
    rest = [job.payload async for job in manager.find(cursor=page.cursor, limit=3)]
    assert rest == [7, 8, 9]
    assert len(await manager.find()) == 100
    assert [job async for job in manager.find(queues=["nothing"])] == []


@suite.case("find", "of one tenant, all pages are of that tenant")
async def every_page_of_a_tenant(env: Env) -> None:
    manager = await env.manager()
    for tenant in ("a", "b"):
        await manager.submit_many([JobSpec(type="t", tenant=tenant) for _ in range(1200)])
    own = [job.tenant async for job in manager.scoped("a").find()]
    assert own == ["a"] * 1200


@suite.case("batches", "waited for: how far they are, time and again, and how all of it ended")
async def wait_for_a_batch(env: Env) -> None:
    manager = await env.manager()
    batch = await manager.submit_batch([JobSpec(type="row") for _ in range(4)])
    with raises(TimeoutError):
        await manager.wait_batch(batch.id, timeout=0)
    with raises(errors.BatchNotFound):
        await manager.wait_batch("nobody", timeout=1)

    async def watch() -> list[int]:
        return [one.ended async for one in manager.watch_batch(batch.id, timeout=30)]

    watching = asyncio.create_task(watch())
    for job in await manager.claim("w", limit=4):
        await manager.complete(job.id, job.token)
    seen = await watching
    assert seen[-1] == 4
    assert seen == sorted(set(seen))
    ended = await manager.wait_batch(batch.id, timeout=0)
    assert (ended.done, ended.completed) == (True, 4)


@suite.case("watch", "a job whenever its state or progress has changed, to its end")
async def watch_a_job(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j")
    seen: asyncio.Queue[Job | None] = asyncio.Queue()

    async def watch() -> None:
        async for job in manager.watch("j", look_seconds=0.05, timeout=30):
            await seen.put(job)
        await seen.put(None)

    async def next_state() -> tuple[State, float | None]:
        job = await asyncio.wait_for(seen.get(), 30)
        assert job is not None
        return job.state, job.progress

    watching = asyncio.create_task(watch())
    assert await next_state() == (State.PENDING, None)
    _, token = await take(manager, "j")
    assert await next_state() == (State.RUNNING, None)
    await manager.progress("j", token, 0.5, "half")
    assert await next_state() == (State.RUNNING, 0.5)
    await manager.complete("j", token)
    assert (await next_state())[0] is State.COMPLETED
    assert await asyncio.wait_for(seen.get(), 30) is None
    await watching


@suite.case("watch", "no longer than asked, and not what is not there")
async def watch_in_vain(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j")
    assert [job.state async for job in manager.watch("j", timeout=0)] == [State.PENDING]
    with raises(errors.JobNotFound):
        await anext(manager.watch("nobody"))
    with raises(errors.JobNotFound):
        await anext(manager.scoped("other").watch("j"))
