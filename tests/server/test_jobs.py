"""Jobs over HTTP: submitted, read, waited for, steered."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import httpx

from headrace.api.problems import MEDIA_TYPE
from headrace.spec import JobSpec
from tests.server.conftest import Server


async def test_a_job_is_stored_and_read(stored: Server) -> None:
    client = await stored.signed_in(tenant="acme")
    answer = await client.post("/api/v1/jobs", json={"type": "send", "payload": {"to": "ada"}})
    assert answer.status_code == 201
    job = answer.json()
    assert answer.headers["location"] == f"/api/v1/jobs/{job['id']}"
    assert (job["tenant"], job["type"], job["state"]) == ("acme", "send", "pending")
    read = await client.get(f"/api/v1/jobs/{job['id']}")
    assert read.json() == job
    assert (await stored.manager.get(job["id"])).payload == {"to": "ada"}


async def test_numbers_of_any_size_come_back_digit_by_digit(stored: Server) -> None:
    client = await stored.signed_in()
    written = (
        b'{"n":123456789012345678901234567890,"d":0.10000000000000000001,"i":9007199254740993}'
    )
    body = b'{"type":"t","payload": ' + written + b"}"
    headers = {"content-type": "application/json"}
    answer = await client.post("/api/v1/jobs", content=body, headers=headers)
    assert written in answer.content
    assert written in (await client.get(answer.headers["location"])).content


async def test_a_key_gives_the_same_job_and_refuses_other_content(server: Server) -> None:
    client = await server.signed_in()
    key = {"Idempotency-Key": '"order-7"'}
    first = await client.post("/api/v1/jobs", json={"type": "t", "payload": [1]}, headers=key)
    again = await client.post("/api/v1/jobs", json={"type": "t", "payload": [1]}, headers=key)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    other = await client.post("/api/v1/jobs", json={"type": "t", "payload": [2]}, headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "KEY_REUSED")


async def test_a_wait_ends_with_the_job(stored: Server) -> None:
    client = await stored.signed_in()
    job = (await stored.manager.submit(JobSpec(type="t"))).job
    early = await client.get(f"/api/v1/jobs/{job.id}/wait", params={"seconds": 0.05})
    assert early.json()["state"] == "pending"
    waiting = asyncio.create_task(client.get(f"/api/v1/jobs/{job.id}/wait"))
    await asyncio.sleep(0.1)
    await stored.manager.cancel([job.id])
    answer = await asyncio.wait_for(waiting, 10)
    assert answer.json()["state"] == "cancelled"


async def test_an_id_may_have_any_characters(server: Server) -> None:
    client = await server.signed_in()
    for job_id in ("a/b?c#d", "é ☃", "batch", "%2F", 'a"b'):
        answer = await client.post("/api/v1/jobs", json={"type": "t", "id": job_id})
        assert answer.status_code == 201, answer.text
        url = httpx.URL("http://localhost" + answer.headers["location"])
        assert (await client.get(url)).json()["id"] == job_id


async def test_what_cannot_be_read_is_a_problem(server: Server) -> None:
    client = await server.signed_in()
    json = {"content-type": "application/json"}
    for content, code in (
        (b"{", "INVALID_REQUEST"),
        (b'{"type": 7}', "INVALID_REQUEST"),
        (b'{"type": "t", "nonsense": 1}', "INVALID_REQUEST"),
        (b'{"type": "t", "payload": "\xff"}', "INVALID_REQUEST"),
        (b'{"type": ""}', "INVALID_NAME"),
        (b'{"type": "t", "payload": {"$sealed": {"v": 1, "key": "k"}}}', "INVALID_PAYLOAD"),
    ):
        answer = await client.post("/api/v1/jobs", content=content, headers=json)
        assert answer.headers["content-type"] == MEDIA_TYPE
        problem = answer.json()
        assert (answer.status_code // 100, problem["code"]) == (4, code), problem
        assert problem["status"] == answer.status_code
        meaning = await client.get(problem["type"])
        assert meaning.json()["code"] == code
    form = await client.post("/api/v1/jobs", data={"type": "t"})
    assert form.json()["code"] == "INVALID_REQUEST"


async def test_a_list_that_is_the_same_is_not_sent_again(server: Server) -> None:
    client = await server.signed_in()
    await server.manager.submit(JobSpec(type="t"))
    first = await client.get("/api/v1/jobs")
    again = await client.get("/api/v1/jobs", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    await server.manager.submit(JobSpec(type="t"))
    changed = await client.get("/api/v1/jobs", headers={"If-None-Match": first.headers["etag"]})
    assert len(changed.json()["jobs"]) == 2


async def test_an_act_on_many_is_counted_started_and_told_of(server: Server) -> None:
    client = await server.signed_in()
    await server.manager.submit_many([JobSpec(type="t", queue="mail") for _ in range(5)])
    body = {"act": "cancel", "where": {"queues": ["mail"]}}
    plan = await client.post("/api/v1/bulk", json={**body, "dry_run": True})
    assert (plan.status_code, plan.json()["plan"]["done"]) == (200, 5)
    started = await client.post("/api/v1/bulk", json=body)
    assert started.status_code == 202
    await server.manager.maintain()
    act = (await client.get(started.headers["location"])).json()
    assert (act["done"], act["actor"]) == (5, "test")
    since = {"since": (server.manager.clock.now() - timedelta(hours=1)).isoformat()}
    rows = (await client.get("/api/v1/audit", params=since)).json()["rows"]
    assert ("start_bulk", "test") in {(row["act"], row["actor"]) for row in rows}
    everything = await client.post("/api/v1/bulk", json={"act": "cancel", "where": {}})
    assert (everything.status_code, everything.json()["code"]) == (422, "EMPTY_SELECTION")
