"""Event streams over real sockets: live, resumed after a restart, told what they missed, ended in time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import pytest

from headrace.connect import connect
from headrace.server import create_app, hub
from headrace.spec import JobSpec
from tests.server.conftest import Server, listening, serve


class Message(msgspec.Struct):
    id: str | None = None
    event: str = "message"
    data: Any = None


async def messages(response: httpx.Response) -> AsyncIterator[Message]:
    """Server-sent events, read as a browser does."""
    message, told = Message(), False
    async for line in response.aiter_lines():
        name, _, value = line.partition(": ")
        match name:
            case "":
                if told:
                    yield message
                message, told = Message(), False
            case "id":
                message.id = value
            case "event":
                message.event = value
            case "data":
                message.data, told = msgspec.json.decode(value), True
            case _:
                pass


@contextlib.asynccontextmanager
async def stream(
    url: str, secret: str, path: str = "/api/v1/events", **headers: str
) -> AsyncIterator[AsyncIterator[Message]]:
    given = {"Authorization": f"Bearer {secret}", "Accept": "text/event-stream", **headers}
    async with (
        httpx.AsyncClient(timeout=20) as client,
        client.stream("GET", url + path, headers=given) as response,
    ):
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield messages(response)


async def take(stream: AsyncIterator[Message], count: int) -> list[Message]:
    async with asyncio.timeout(15):
        return [await anext(stream) for _ in range(count)]


async def test_a_stream_tells_what_happens_and_goes_on_after_a_restart(store_url: str) -> None:
    server = await serve(store_url)
    secret = await server.token("read")
    submitted: list[str] = []
    seen: list[str] = []

    async def submit(count: int) -> None:
        made = await server.manager.submit_many([JobSpec(type="t") for _ in range(count)])
        submitted.extend(job.id for job in made.jobs)

    try:
        async with listening(server.application) as url, stream(url, secret) as one:
            await submit(3)
            got = await take(one, 3)
        seen += [each.data["job_id"] for each in got]
        last = got[-1].id
        assert last is not None
        await submit(1500)  # while no server runs: more than one page of the log
        restarted = create_app(server.manager)
        async with listening(restarted) as url:
            async with stream(url, secret, **{"Last-Event-ID": last}) as one:
                got = await take(one, 1500)
                seen += [each.data["job_id"] for each in got]
                await submit(5)
                got = await take(one, 5)
            seen += [each.data["job_id"] for each in got]
            await restarted.service.close()
        assert seen == submitted
    finally:
        await server.close()


async def test_a_stream_shows_a_tenant_its_own_and_what_it_asks_for() -> None:
    server = await serve("memory:")
    try:
        async with listening(server.application) as url:
            secret = await server.token("read", tenant="acme")
            path = "/api/v1/events?queue=mail&kind=enqueued&kind=cancelled"
            async with stream(url, secret, path) as one:
                for tenant, queue in (("other", "mail"), ("acme", "else"), ("acme", "mail")):
                    job = JobSpec(type="t", id=f"{tenant}-{queue}", tenant=tenant, queue=queue)
                    await server.manager.submit(job)
                await server.manager.claim("w", queues=["mail"], limit=5)
                await server.manager.cancel(["other-mail", "acme-mail"], mode=None)
                await server.manager.scoped("acme").submit(JobSpec(type="t", id="x", queue="mail"))
                got = await take(one, 2)
            assert [each.data["job_id"] for each in got] == ["acme-mail", "x"]
    finally:
        await server.close()


async def test_topics_say_what_has_changed() -> None:
    server = await serve("memory:")
    try:
        async with listening(server.application) as url:
            secret = await server.token("read")
            async with stream(url, secret, "/api/v1/live") as one:
                await server.manager.submit_many(
                    [JobSpec(type="t", id=f"j{n}", queue=f"q{n % 2}") for n in range(4)]
                )
                (got,) = await take(one, 1)
            assert got.event == "changed"
            assert got.data["queues"] == ["q0", "q1"]
            assert got.data["jobs"] == ["j0", "j1", "j2", "j3"]
    finally:
        await server.close()


async def test_who_is_too_slow_is_told_what_it_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "RING_EVENTS", 10)
    server = await serve("memory:")
    try:
        fan = server.application.service.hub
        view = hub.View(("all",), lambda events: b",".join(e.job_id.encode() for e in events))
        pieces = fan.stream(server.manager, view, None)
        assert await anext(pieces) is None
        reading = asyncio.ensure_future(anext(pieces))
        await asyncio.sleep(0.05)
        await server.manager.submit(JobSpec(type="t", id="first"))
        assert await reading == b"first"
        await server.manager.submit_many([JobSpec(type="t", id=f"j{n}") for n in range(30)])
        await asyncio.sleep(0.3)  # nobody reads meanwhile
        missed = await anext(pieces)
        assert isinstance(missed, hub.Missed)
        rest = await anext(pieces)
        assert rest == b",".join(b"j%d" % n for n in range(20, 30))
        between = await server.manager.events(after=missed.after)
        assert [event.job_id for event in between][:20] == [f"j{n}" for n in range(20)]
        await pieces.aclose()  # type: ignore[attr-defined]
    finally:
        await server.close()


async def test_a_stream_ends_with_its_token() -> None:
    server = await serve("memory:")
    try:
        made = await server.manager.create_token("t", ["read"])
        async with listening(server.application) as url, stream(url, made.secret) as one:
            await server.manager.revoke_token(made.token.id)
            (got,) = await take(one, 1)
            assert got.event == "ended"
            with pytest.raises(StopAsyncIteration):
                await take(one, 1)
    finally:
        await server.close()


async def test_a_reader_behind_what_was_trimmed_is_told(tmp_path: Any) -> None:
    server = await serve("memory:")
    manager = server.manager
    try:
        await manager.submit(JobSpec(type="t", id="old"))
        (event,) = await manager.events()
        await manager.submit_many([JobSpec(type="t", id=f"j{n}") for n in range(3)])
        await manager.reader_reached("r", await manager.tail())
        await manager.trim_events(0, limit=3)
        async with listening(server.application) as url:
            secret = await server.token("read")
            async with stream(url, secret, **{"Last-Event-ID": event.cursor}) as one:
                reset, left = await take(one, 2)
        assert reset.event == "reset"
        assert left.data["job_id"] == "j2"
    finally:
        await server.close()


async def test_pages_of_the_log_go_on_at_their_cursor(stored: Server) -> None:
    client = await stored.signed_in("read")
    await stored.manager.submit_many([JobSpec(type="t", id=f"j{n}") for n in range(5)])
    cursor, seen = "", []
    while True:
        page = (await client.get(f"/api/v1/events?limit=2&after={quote(cursor)}")).json()
        if not page["events"]:
            break
        seen += [event["job_id"] for event in page["events"]]
        cursor = page["cursor"]
    assert seen == [f"j{n}" for n in range(5)]


async def test_the_hub_reads_once_for_all_who_wait() -> None:
    """A thousand waits: each reads its own job when that has ended, and nobody else's events."""
    manager = await connect("memory:")
    server = Server(manager, create_app(manager))
    try:
        await manager.submit_many([JobSpec(type="t", id=f"j{n}") for n in range(1000)])
        fan = server.application.service.hub
        waits = [asyncio.create_task(fan.wait_for_end(manager, f"j{n}", 20)) for n in range(1000)]
        await asyncio.sleep(0.3)
        reads = 0
        get = type(manager.store).get

        async def counted(store: Any, ids: Any) -> Any:
            nonlocal reads
            reads += 1
            return await get(store, ids)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(manager.store), "get", counted)
            for n in range(1000, 1100):
                await manager.submit(JobSpec(type="t", id=f"j{n}"))
            await asyncio.sleep(0.2)
            assert reads == 0
            await manager.cancel(["j7"])
            assert (await asyncio.wait_for(waits[7], 5)).state == "cancelled"
        for wait in waits:
            wait.cancel()
        await asyncio.wait(waits)
    finally:
        await server.close()
