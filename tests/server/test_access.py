"""Who may ask what: every route, with every token that is not good for it, generated from the table."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import msgspec
import pytest

from headrace.api.route import Route
from headrace.api.table import ROUTES
from headrace.clock import ManualClock
from headrace.model import Lease
from headrace.spec import JobSpec
from headrace.tokens import Scope
from tests.server.conftest import Server, serve
from tests.server.samples import BODIES, request_of

CLOSED = [route for route in ROUTES if not route.is_open]
STREAMS = {"text/event-stream"}
OF_JOBS = [route for route in CLOSED if "job_id" in route.parameters]
READING = [
    route
    for route in CLOSED
    if route.method == "GET" and not route.for_operators and route.media_type not in STREAMS
]
MARK, CONTENT = "their-own", "what-is-inside"


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    served = await serve("memory:")
    await served.manager.submit(JobSpec(type="t", id="elsewhere", tenant="other"))
    yield served
    await served.close()


def test_there_is_a_sample_for_every_body() -> None:
    assert {route.name for route in ROUTES if route.body is not None} == set(BODIES)


def test_routes_are_unique() -> None:
    assert len({route.name for route in ROUTES}) == len(ROUTES)
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)


async def test_every_route_is_closed_to_bad_tokens() -> None:
    clock = ManualClock()
    server = await serve("memory:", clock=clock)
    now = clock.now()
    expiring = await server.manager.create_token(
        "expired", list(Scope), expires_at=now + timedelta(seconds=1)
    )
    clock.advance(1)
    revoked = await server.manager.create_token("revoked", list(Scope))
    await server.manager.revoke_token(revoked.token.id)
    good = await server.token()
    secrets = {
        "none": None,
        "expired": expiring.secret,
        "revoked": revoked.secret,
        "made up": good[:-4] + "AAAA",
        "no token at all": "x" * 50,
    }
    for route, (name, secret) in itertools.product(CLOSED, secrets.items()):
        answer = await server.client(secret).request(**request_of(route))
        told = (answer.status_code, answer.json()["code"])
        assert told == (401, "UNAUTHENTICATED"), (route.name, name)
        assert answer.headers["www-authenticate"] == "Bearer"
    await server.close()


async def test_every_route_needs_each_of_its_scopes_and_no_other(server: Server) -> None:
    without = {
        scope: await server.signed_in(*(s for s in Scope if s is not scope)) for scope in Scope
    }
    of_a_tenant = await server.signed_in(tenant="acme")
    for route in CLOSED:
        for missing in route.scopes:
            answer = await without[missing].request(**request_of(route))
            told = (answer.status_code, answer.json()["code"])
            assert told == (403, "FORBIDDEN"), (route.name, missing)
        if route.for_operators:
            answer = await of_a_tenant.request(**request_of(route))
            assert (answer.status_code, answer.json()["code"]) == (403, "FORBIDDEN"), route.name
        if route.media_type in STREAMS:
            continue  # spoken to in test_events
        exact = await server.signed_in(*(route.scopes or (Scope.READ,)))
        answer = await exact.request(**request_of(route))
        assert answer.status_code not in (401, 403, 500), (route.name, answer.text)


async def test_a_foreign_job_is_told_as_one_that_is_not_there(server: Server) -> None:
    client = await server.signed_in(tenant="acme")
    for route in OF_JOBS:
        await is_not_there(server, client, route)


async def is_not_there(server: Server, client: httpx.AsyncClient, route: Route) -> None:
    """In every state that could make a difference, and with its true lease."""
    manager = server.manager
    waiting = (await manager.submit(JobSpec(type="t", tenant="other"))).job
    ended = (await manager.submit(JobSpec(type="e", tenant="other"))).job
    await manager.cancel([ended.id])
    await manager.submit(JobSpec(type="r", tenant="other"))
    (running,) = await manager.claim("w", types=["r"])
    for job in (waiting, ended, running):
        request = request_of(route, job_id=job.id)
        if "headers" in request and job.token:
            request["headers"] = {"Headrace-Lease": job.token}
        foreign = await client.request(**request)
        assert await manager.get(job.id) == job if job is not ended else True
        if not job.is_terminal:
            await manager.cancel([job.id], mode="immediate")  # type: ignore[arg-type]
        await manager.delete([job.id])
        unknown = await client.request(**request)
        assert foreign.status_code == 404, route.name
        assert (foreign.status_code, foreign.content) == (unknown.status_code, unknown.content)


async def filled(server: Server) -> str:
    """A tenant with a job that has everything a job can have."""
    theirs = server.manager.scoped(MARK)
    spec = JobSpec(
        type=f"type-{MARK}",
        queue=f"queue-{MARK}",
        tags=[f"tag-{MARK}"],
        payload={"x": CONTENT},
        callback_url=f"https://example.org/{CONTENT}",
        key=MARK,
    )
    job = (await theirs.submit(spec)).job
    (leased,) = await theirs.claim(f"worker-{MARK}")
    assert leased.token is not None
    await theirs.progress(job.id, leased.token, 0.5, CONTENT)
    await theirs.checkpoint(job.id, leased.token, CONTENT)
    lines = [{"attempt": 1, "message": CONTENT, "traceback": CONTENT}]
    await theirs.keep_log(job.id, leased.token, lines)
    await theirs.heartbeat([Lease(job.id, leased.token)])
    await theirs.fail(job.id, leased.token, CONTENT, code="E")
    await theirs.schedule("nightly", _every_hour(), JobSpec(type="s", payload=CONTENT))
    await theirs.pause(f"queue-{MARK}")
    await theirs.submit_batch([JobSpec(type="b", payload=CONTENT)], batch_id="b")
    return job.id


def _every_hour() -> Any:
    from headrace.schedules import Every

    return Every(3600)


async def test_a_tenant_reads_nothing_of_another(server: Server) -> None:
    job_id = await filled(server)
    client = await server.signed_in(tenant="acme")
    for route in READING:
        answer = await client.request(**request_of(route, job_id=job_id))
        told = answer.text.replace(job_id, "")
        assert MARK not in told, route.name
        assert CONTENT not in told, route.name


async def test_contents_are_read_with_their_scope_only(server: Server) -> None:
    job_id = await filled(server)
    client = await server.signed_in(*(s for s in Scope if s is not Scope.READ_PAYLOAD))
    for route in READING:
        answer = await client.request(**request_of(route, job_id=job_id))
        assert CONTENT not in answer.text, route.name
        if Scope.READ_PAYLOAD not in route.scopes:
            # 404: a schedule of the operator's own tenant
            assert answer.status_code in (200, 404), route.name


async def test_contents_are_read_with_their_scope(server: Server) -> None:
    job_id = await filled(server)
    client = await server.signed_in(Scope.READ, Scope.READ_PAYLOAD, tenant=MARK)
    job = (await client.get(f"/api/v1/jobs/{job_id}")).json()
    assert (job["payload"], job["checkpoint"], job["progress_note"]) == (
        {"x": CONTENT},
        CONTENT,
        CONTENT,
    )
    assert job["failure"]["message"] == CONTENT


async def test_a_revoked_token_is_dead_within_a_second(server: Server) -> None:
    made = await server.manager.create_token("t", [Scope.READ])
    client = server.client(made.secret)
    assert (await client.get("/api/v1/jobs")).status_code == 200
    await server.manager.revoke_token(made.token.id)
    deadline = server.manager.clock.now() + timedelta(seconds=1)
    while (await client.get("/api/v1/jobs")).status_code == 200:
        assert server.manager.clock.now() < deadline


async def test_a_read_only_server_changes_nothing() -> None:
    server = await serve("memory:", read_only=True)
    client = server.client(await server.token())
    try:
        for route in CLOSED:
            answer: httpx.Response | None = None
            changes = not set(route.scopes) <= {Scope.READ, Scope.READ_PAYLOAD}
            if changes:
                answer = await client.request(**request_of(route))
                assert answer.status_code == 403, route.name
        assert (await client.get("/api/v1/jobs")).status_code == 200
    finally:
        await server.close()


async def test_a_browser_signs_in_and_is_not_led_by_another_site(server: Server) -> None:
    client = server.client()
    secret = await server.token()
    wrong = await client.post("/api/v1/session", json={"token": secret[:-3] + "AAA"})
    assert wrong.status_code == 401
    signed_in = await client.post("/api/v1/session", json={"token": secret})
    cookie = signed_in.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Secure" not in cookie  # on this machine
    assert (await client.get("/api/v1/session")).json()["actor"] == "test"
    job = {"type": "t"}
    for headers, allowed in (
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Origin": "http://localhost"}, True),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "null"}, False),
    ):
        answer = await client.post("/api/v1/jobs", json=job, headers=headers)
        assert (answer.status_code == 201) == allowed, headers
    signed_out = await client.delete("/api/v1/session")
    assert signed_out.status_code == 204
    assert (await client.get("/api/v1/session")).status_code == 401


async def test_off_this_machine_the_cookie_goes_over_tls_only(server: Server) -> None:
    client = server.client()
    url = "http://jobs.example.org/api/v1/session"
    answer = await client.post(url, json={"token": await server.token()})
    assert "Secure" in answer.headers["set-cookie"]


async def test_sign_ins_that_fail_are_throttled(server: Server) -> None:
    client = server.client()
    answers = [
        await client.post("/api/v1/session", json={"token": f"hdr_{number}"})
        for number in range(12)
    ]
    statuses = [answer.status_code for answer in answers]
    assert [status for status, _ in itertools.groupby(statuses)] == [401, 429]
    assert int(answers[-1].headers["retry-after"]) <= 61


async def test_open_to_all_means_this_machine() -> None:
    server = await serve("memory:", open_to_all=True)
    client = server.client()
    try:
        assert (await client.get("/api/v1/jobs")).status_code == 200
        # The name of another site that was made to lead here (DNS rebinding).
        rebound = await client.get("http://evil.example/api/v1/jobs")
        assert rebound.status_code == 401
        led = await client.post(
            "/api/v1/jobs", json={"type": "t"}, headers={"Origin": "https://evil.example"}
        )
        assert led.status_code == 403
        assert (await server.manager.stats()).total == 0
    finally:
        await server.close()


async def test_the_hosts_own_sign_in(server: Server) -> None:
    from headrace.server import Access, create_app

    async def sign_in(connection: Any) -> Access | None:
        name = connection.headers.get("x-user")
        return name and Access(tenant="acme", scopes=frozenset({Scope.READ}), actor=name)

    app = create_app(server.manager, sign_in=sign_in)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost"
    ) as client:
        answer = await client.get("/api/v1/session", headers={"x-user": "ada"})
        assert msgspec.json.decode(answer.content)["actor"] == "ada"
        assert (await client.get("/api/v1/session")).status_code == 401
        refused = await client.post("/api/v1/jobs", json={"type": "t"}, headers={"x-user": "ada"})
        assert refused.status_code == 403
