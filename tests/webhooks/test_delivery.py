"""Webhooks sent over real connections to a real receiver."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import socket
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from headrace import JobManager, JobSpec, PermanentError, Policy, State, TemporaryError, connect
from headrace.clock import ManualClock
from headrace.crypto import KeyRing, new_key
from headrace.model import Job
from headrace.webhooks import QUEUE, TYPE, Limits, deliver, new_secret, verify
from tests.webhooks.receiver import Handler, Request, Server, answers, running

SECRET = new_secret()
LOOPBACK = ["127.0.0.0/8"]
PUBLIC = "203.0.114.7"  # in no special range; nothing is ever sent there


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def jobs(clock: ManualClock) -> AsyncIterator[JobManager]:
    async with await connect("memory:", policies=Policy(max_attempts=1), clock=clock) as manager:
        yield manager


async def webhook_of(jobs: JobManager, url: str, how: State = State.COMPLETED, **spec: Any) -> Job:
    """The claimed job that is to tell of the end of another."""
    job = (await jobs.submit(JobSpec(type="t", callback_url=url, **spec))).job
    if how is State.CANCELLED:
        await jobs.cancel([job.id])
    else:
        (claimed,) = await jobs.claim("w", queues=[job.queue])
        match how:
            case State.COMPLETED:
                await jobs.complete(job.id, claimed.token, {"sum": 3})
            case State.FAILED:
                await jobs.fail(job.id, claimed.token, PermanentError("no such user", code="E1"))
            case State.DEAD:
                await jobs.fail(job.id, claimed.token, "busy")
            case State.ABANDONED:
                await jobs.abandon(job.id)
            case _:
                raise AssertionError(how)
    (webhook,) = await jobs.claim("w", queues=[QUEUE])
    assert webhook.type == TYPE
    return webhook


async def send(jobs: JobManager, webhook: Job, **options: Any) -> dict[str, Any]:
    given = {"secrets": [SECRET], "allow_private": LOOPBACK} | options
    return await deliver(jobs, webhook, **given)


def signature_by_hand(request: Request, secret: str) -> str:
    """As the standard words it, with nothing of ours."""
    key = base64.b64decode(secret.split("_", 1)[1])
    content = b"%s.%s.%s" % (
        request.headers["webhook-id"].encode(),
        request.headers["webhook-timestamp"].encode(),
        request.body,
    )
    return "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()


async def test_a_delivery_is_signed_and_says_what_happened(
    jobs: JobManager, clock: ManualClock
) -> None:
    old = new_secret()
    with running() as receiver:
        webhook = await webhook_of(jobs, receiver.url, id="j-1", tags=["a=b"], correlation_id="c")
        clock.advance(7)
        assert await send(jobs, webhook, secrets=[SECRET, old]) == {"status": 200}
    (request,) = receiver.requests
    headers = request.headers
    assert request.path == "/done?x=1"
    assert headers["content-type"] == "application/json"
    assert headers["host"] == f"127.0.0.1:{receiver.port}"
    assert headers["webhook-timestamp"] == str(int(clock.now().timestamp()))
    expected = [signature_by_hand(request, secret) for secret in (SECRET, old)]
    assert headers["webhook-signature"].split(" ") == expected
    assert verify(headers, request.body, [old], clock.now()) == webhook.payload["message_id"]
    told = request.json
    assert (told["type"], told["timestamp"]) == ("job.completed", "2026-01-01T00:00:00Z")
    data = told["data"]
    assert {name: data[name] for name in ("id", "type", "queue", "tenant", "state")} == {
        "id": "j-1",
        "type": "t",
        "queue": "default",
        "tenant": "default",
        "state": "completed",
    }
    assert (data["attempt"], data["tags"], data["correlation_id"]) == (1, ["a=b"], "c")
    assert (data["result"], data["result_bytes"]) == ({"sum": 3}, 9)
    assert "error" not in data


@pytest.mark.parametrize(
    ("how", "error"),
    [
        (State.FAILED, {"message": "no such user", "category": "permanent", "code": "E1"}),
        (State.DEAD, {"message": "busy", "category": "temporary", "code": None}),
        (State.CANCELLED, {"message": "cancelled", "category": "cancelled", "code": None}),
        (State.ABANDONED, {"message": "abandoned", "category": "cancelled", "code": None}),
    ],
)
async def test_every_end_is_told(jobs: JobManager, how: State, error: dict[str, Any]) -> None:
    with running() as receiver:
        await send(jobs, await webhook_of(jobs, receiver.url, how))
    told = receiver.requests[0].json
    assert (told["type"], told["data"]["state"], told["data"]["error"]) == (
        f"job.{how}",
        how,
        error,
    )
    assert "result" not in told["data"]


async def test_a_large_result_is_left_out(jobs: JobManager) -> None:
    with running() as receiver:
        job = (await jobs.submit(JobSpec(type="t", callback_url=receiver.url))).job
        (claimed,) = await jobs.claim("w")
        await jobs.complete(job.id, claimed.token, "x" * 100_000)
        (webhook,) = await jobs.claim("w")
        await send(jobs, webhook)
    data = receiver.requests[0].json["data"]
    assert "result" not in data
    assert data["result_bytes"] == 100_002


@pytest.mark.parametrize("how", [State.COMPLETED, State.DEAD])
async def test_what_is_encrypted_at_rest_is_not_sent_in_the_open(how: State) -> None:
    keys = KeyRing.parse(new_key("k1"))
    policy = Policy(max_attempts=1)
    async with await connect("memory:", policies=policy, keys=keys) as jobs:
        with running() as receiver:
            await send(jobs, await webhook_of(jobs, receiver.url, how))
    assert b"sum" not in receiver.requests[0].body
    assert b"busy" not in receiver.requests[0].body
    data = receiver.requests[0].json["data"]
    assert data["state"] == how
    assert data.get("error") in (None, {"category": "temporary", "code": None})


async def test_a_job_that_is_deleted_meanwhile_is_told_of_all_the_same(jobs: JobManager) -> None:
    with running() as receiver:
        webhook = await webhook_of(jobs, receiver.url, State.DEAD, id="j")
        await jobs.delete(["j"])
        await send(jobs, webhook)
        assert receiver.requests[0].json["type"] == "job.dead"
        data = receiver.requests[0].json["data"]
        assert data == {"id": "j", "tenant": "default", "state": "dead"}


async def test_a_job_of_another_tenant_is_not_told_of(jobs: JobManager) -> None:
    await jobs.submit(JobSpec(type="t", id="secret", tenant="other"))
    payload = {"job_id": "secret", "url": "http://127.0.0.1:1/", "message_id": "m"}
    await jobs.submit(JobSpec(type=TYPE, queue=QUEUE, payload=payload))
    (forged,) = await jobs.claim("w", queues=[QUEUE])
    with pytest.raises(PermanentError, match="is gone"):
        await send(jobs, forged)


@pytest.mark.parametrize(
    "payload",
    [
        None,
        {},
        {"job_id": "j", "url": 7, "message_id": "m"},
        {"job_id": "j", "url": "file:///etc/passwd", "message_id": "m"},
        {"job_id": "j", "url": "http://u:p@127.0.0.1/", "message_id": "m"},
    ],
)
async def test_what_is_no_webhook_fails_for_good(jobs: JobManager, payload: Any) -> None:
    await jobs.submit(JobSpec(type=TYPE, queue=QUEUE, payload=payload))
    (forged,) = await jobs.claim("w")
    with pytest.raises(PermanentError, match="no webhook"):
        await send(jobs, forged)


# --- what an answer means ------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_2xx_is_success(jobs: JobManager, status: int) -> None:
    with running(answers(status)) as receiver:
        assert await send(jobs, await webhook_of(jobs, receiver.url)) == {"status": status}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed_and_fails_for_good(jobs: JobManager, status: int) -> None:
    with running() as elsewhere, running(answers(status, Location=elsewhere.url)) as receiver:
        with pytest.raises(PermanentError, match="redirects") as caught:
            await send(jobs, await webhook_of(jobs, receiver.url))
        assert caught.value.code == f"http_{status}"
        assert (len(receiver.requests), elsewhere.connections) == (1, 0)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 410, 413, 422, 451])
async def test_what_blames_the_request_is_not_tried_again(jobs: JobManager, status: int) -> None:
    with running(answers(status)) as receiver:
        with pytest.raises(PermanentError) as caught:
            await send(jobs, await webhook_of(jobs, receiver.url))
        assert caught.value.code == f"http_{status}"


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
async def test_what_may_pass_is_tried_again_when_the_receiver_asks(
    jobs: JobManager, status: int
) -> None:
    with running(answers(status, Retry_After="90")) as receiver:
        with pytest.raises(TemporaryError) as caught:
            await send(jobs, await webhook_of(jobs, receiver.url))
        assert caught.value.retry_after == 90.0


async def test_a_failed_delivery_is_repeated_under_the_same_id(
    jobs: JobManager, clock: ManualClock
) -> None:
    with running(answers(500), answers(503, Retry_After="60"), answers(200)) as receiver:
        webhook = await webhook_of(jobs, receiver.url)
        waits = []
        for _ in range(2):
            with pytest.raises(TemporaryError) as caught:
                await send(jobs, webhook)
            failed = (await jobs.fail(webhook.id, webhook.token, caught.value)).job
            assert failed.state is State.RETRYING
            waits.append((failed.run_at - clock.now()).total_seconds())
            assert await jobs.claim("w", queues=[QUEUE]) == ()
            clock.set(failed.run_at)
            (webhook,) = await jobs.claim("w", queues=[QUEUE])
        await send(jobs, webhook)
    assert waits == [pytest.approx(5.0, rel=0.11), 60.0]
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1
    assert len({request.body for request in receiver.requests}) == 1
    times = [int(request.headers["webhook-timestamp"]) for request in receiver.requests]
    assert times == sorted(set(times))
    for request in receiver.requests:
        assert request.headers["webhook-signature"] == signature_by_hand(request, SECRET)


async def test_a_redriven_delivery_keeps_the_id(jobs: JobManager) -> None:
    with running(answers(410), answers(200)) as receiver:
        webhook = await webhook_of(jobs, receiver.url)
        with pytest.raises(PermanentError) as caught:
            await send(jobs, webhook)
        await jobs.fail(webhook.id, webhook.token, caught.value)
        await jobs.redrive([webhook.id])
        (again,) = await jobs.claim("w", queues=[QUEUE])
        assert again.previous_id == webhook.id
        await send(jobs, again)
    first, second = receiver.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"]


# --- where it is sent ----------------------------------------------------------------------------


def spellings(port: int) -> list[str]:
    hosts = [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "169.254.169.254",
        "10.0.0.1",
    ]
    return [f"http://{host}:{port}/" for host in hosts]


async def test_what_is_not_public_is_refused_however_it_is_written(jobs: JobManager) -> None:
    with running() as receiver:
        for url in spellings(receiver.port):
            with pytest.raises(PermanentError, match="no public address") as caught:
                await send(jobs, await webhook_of(jobs, url), allow_private=())
            assert caught.value.code == "address_refused"
        assert receiver.connections == 0


async def test_a_name_that_leads_inside_is_refused_and_its_address_not_told(
    jobs: JobManager, caplog: pytest.LogCaptureFixture
) -> None:
    with running() as receiver:
        webhook = await webhook_of(jobs, f"http://innocent.example:{receiver.port}/")
        with pytest.raises(PermanentError) as caught:
            await send(
                jobs, webhook, allow_private=(), resolve=lambda host, port: ["127.0.0.1", "::1"]
            )
        assert receiver.connections == 0
    assert "127.0.0.1" not in caught.value.message
    assert "127.0.0.1" in caplog.text


class Rebinding:
    """A name server that first gives a public address, and from then on one inside."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        return [PUBLIC] if self.asked == 1 else ["127.0.0.1"]


class Dialler:
    """Connects to the receiver whatever it is told to dial, and remembers what that was."""

    def __init__(self, receiver: Server, *, unreachable: Sequence[str] = ()) -> None:
        self.dialled: list[tuple[str, int]] = []
        self._port = receiver.port
        self._unreachable = unreachable

    def __call__(self, address: str, port: int, seconds: float) -> socket.socket:
        self.dialled.append((address, port))
        if address in self._unreachable:
            raise ConnectionRefusedError(111, "Connection refused")
        return socket.create_connection(("127.0.0.1", self._port), timeout=seconds)


async def test_a_name_is_resolved_once_and_the_checked_address_is_dialled(jobs: JobManager) -> None:
    with running() as receiver:
        resolver, dialler = Rebinding(), Dialler(receiver)
        webhook = await webhook_of(jobs, "http://rebinding.example:8080/x")
        await send(jobs, webhook, allow_private=(), resolve=resolver, dial=dialler)
    assert (resolver.asked, dialler.dialled) == (1, [(PUBLIC, 8080)])
    assert receiver.requests[0].headers["host"] == "rebinding.example:8080"


async def test_of_several_addresses_only_the_public_ones_are_tried(jobs: JobManager) -> None:
    with running() as receiver:
        dialler = Dialler(receiver, unreachable=["2a00::1"])
        found = ["10.0.0.1", "2a00::1", "127.0.0.1", PUBLIC, "::1"]
        webhook = await webhook_of(jobs, "http://mixed.example/")
        await send(jobs, webhook, allow_private=(), resolve=lambda *_: found, dial=dialler)
    assert dialler.dialled == [("2a00::1", 80), (PUBLIC, 80)]


async def test_no_proxy_of_the_environment_is_asked(
    jobs: JobManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running() as proxy, running() as receiver:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        await send(jobs, await webhook_of(jobs, receiver.url))
        assert (proxy.connections, receiver.connections) == (0, 1)


async def test_what_cannot_be_resolved_or_reached_is_tried_again(jobs: JobManager) -> None:
    def unknown(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    webhook = await webhook_of(jobs, "http://unknown.example/")
    with pytest.raises(TemporaryError, match=r"unknown\.example"):
        await send(jobs, webhook, resolve=unknown)
    with running() as receiver:
        url = receiver.url
    with pytest.raises(TemporaryError, match="refused"):
        await send(jobs, await webhook_of(jobs, url))


# --- receivers that misbehave --------------------------------------------------------------------


def slow_body(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    handler.drip(b"x")


def huge_body(handler: Handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    handler.drip(b"x" * 65536, seconds=0)


def slow_headers(handler: Handler) -> None:
    handler.send_response(200)
    handler.flush_headers()
    handler.drip(b"X-Slow: 1\r\n")


def endless_continue(handler: Handler) -> None:
    handler.drip(b"HTTP/1.1 100 Continue\r\n\r\n")


def silent(handler: Handler) -> None:
    handler.server.over.wait(60)


def garbage(handler: Handler) -> None:
    handler.wfile.write(b"\x00\xff" * 50_000 + b"\r\n\r\n")


def hangs_up(handler: Handler) -> None:
    handler.close_connection = True


QUICK = Limits(total_seconds=0.5, read_seconds=0.4, drain_seconds=0.1)


@pytest.mark.parametrize("behaviour", [slow_body, huge_body])
async def test_the_status_counts_whatever_the_body_does(jobs: JobManager, behaviour: Any) -> None:
    with running(behaviour) as receiver:
        start = time.monotonic()
        limits = Limits(total_seconds=20, drain_seconds=0.2)
        answer = await send(jobs, await webhook_of(jobs, receiver.url), limits=limits)
        assert answer == {"status": 200}
        assert time.monotonic() - start < 10
        assert await asyncio.to_thread(receiver.broken.wait, 30), "the connection was left open"


@pytest.mark.parametrize("behaviour", [slow_headers, endless_continue, silent])
async def test_a_slow_receiver_is_given_up(jobs: JobManager, behaviour: Any) -> None:
    with running(behaviour) as receiver:
        start = time.monotonic()
        with pytest.raises(TemporaryError, match="time"):
            await send(jobs, await webhook_of(jobs, receiver.url), limits=QUICK)
        assert time.monotonic() - start < 10


@pytest.mark.parametrize("behaviour", [garbage, hangs_up])
async def test_a_broken_answer_is_a_failure_that_may_pass(jobs: JobManager, behaviour: Any) -> None:
    with running(behaviour) as receiver, pytest.raises(TemporaryError):
        await send(jobs, await webhook_of(jobs, receiver.url))


async def test_a_slow_name_server_is_given_up(jobs: JobManager) -> None:
    with running() as receiver:

        def slow(host: str, port: int) -> Sequence[str]:
            receiver.over.wait(60)
            return ["127.0.0.1"]

        webhook = await webhook_of(jobs, "http://slow.example/")
        with pytest.raises(TemporaryError):
            await send(jobs, webhook, resolve=slow, limits=Limits(resolve_seconds=0.05))


async def test_a_cancelled_delivery_leaves_no_connection_behind(jobs: JobManager) -> None:
    with running(slow_headers) as receiver:
        webhook = await webhook_of(jobs, receiver.url)
        task = asyncio.create_task(send(jobs, webhook))
        assert await asyncio.to_thread(receiver.asked.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(receiver.broken.wait, 30)


async def test_slow_receivers_do_not_wait_for_each_other(jobs: JobManager) -> None:
    with running(silent) as receiver:
        webhooks = [await webhook_of(jobs, receiver.url) for _ in range(20)]
        limits = Limits(total_seconds=1.0)
        start = time.monotonic()
        outcomes = await asyncio.gather(
            *(send(jobs, one, limits=limits) for one in webhooks), return_exceptions=True
        )
        assert all(isinstance(outcome, TemporaryError) for outcome in outcomes)
        assert time.monotonic() - start < 15
