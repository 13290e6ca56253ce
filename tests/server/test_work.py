"""Workers over HTTP: claiming, keeping, settling, and being refused."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import httpx

from headrace.clock import ManualClock
from headrace.spec import JobSpec
from tests.server.conftest import Server, listening, serve


async def claim(client: httpx.AsyncClient, **body: Any) -> list[dict[str, Any]]:
    answer = await client.post("/api/v1/claim", json={"worker": "w", **body})
    assert answer.status_code == 200, answer.text
    jobs: list[dict[str, Any]] = answer.json()["jobs"]
    return jobs


def lease(job: dict[str, Any]) -> dict[str, str]:
    return {"Headrace-Lease": job["lease"]["token"]}


async def test_a_job_is_claimed_worked_on_and_completed(stored: Server) -> None:
    manager = stored.manager
    client = await stored.signed_in("work", tenant="acme")
    await manager.submit(JobSpec(type="t", id="a/b", tenant="acme", payload={"n": 2**70}))
    (job,) = await claim(client)
    assert job["payload"] == {"n": 2**70}  # whoever runs it sees what is in it
    place = "/api/v1/jobs/a%2Fb"
    shown = lease(job)
    for verb, body in (
        ("progress", {"fraction": 0.5, "note": "half"}),
        ("checkpoint", {"value": {"at": 7}}),
        ("log", {"lines": [{"message": "hello"}]}),
    ):
        answer = await client.post(f"{place}/{verb}", json=body, headers=shown)
        assert (answer.status_code, answer.content) == (204, b""), answer.text
    held = {"job_id": "a/b", "lease": job["lease"]["token"]}
    beat = await client.post("/api/v1/leases/heartbeat", json={"leases": [held]})
    assert beat.json()["extended"]["a/b"]["state"] == "running"
    child = {"jobs": [{"type": "child"}]}
    spawned = await client.post(f"{place}/spawn", json=child, headers=shown)
    assert spawned.json()["jobs"][0]["parent_id"] == "a/b"
    done = await client.post(f"{place}/complete", json={"result": [1, 2]}, headers=shown)
    assert (done.status_code, done.json()["state"]) == (200, "completed")
    after = await manager.get("a/b")
    assert (after.result, after.progress, after.checkpoint) == ([1, 2], 0.5, {"at": 7})
    again = await client.post(f"{place}/complete", json={"result": 3}, headers=shown)
    assert (again.status_code, again.json()["code"]) == (409, "JOB_TERMINAL")


async def test_a_late_worker_is_refused(stored: Server) -> None:
    """Its lease has lapsed, and another has the job: whatever it says changes nothing."""
    client = await stored.signed_in("work")
    await stored.manager.submit(JobSpec(type="t", id="j"))
    (first,) = await claim(client, lease_seconds=0.2)
    await asyncio.sleep(0.3)
    await stored.manager.reap()
    (second,) = await claim(client, worker="other")
    for verb, body in (("complete", {}), ("fail", {"message": "x"}), ("progress", {"fraction": 1})):
        answer = await client.post(f"/api/v1/jobs/j/{verb}", json=body, headers=lease(first))
        assert (answer.status_code, answer.json()["code"]) == (409, "STALE_TOKEN"), verb
    without = await client.post("/api/v1/jobs/j/complete", json={})
    assert (without.status_code, without.json()["code"]) == (400, "INVALID_REQUEST")
    done = await client.post("/api/v1/jobs/j/complete", headers=lease(second))
    assert done.json()["attempt"] == 2


async def test_many_are_settled_in_one_step(stored: Server) -> None:
    client = await stored.signed_in("work")
    await stored.manager.submit_many([JobSpec(type="t", id=f"j{n}") for n in range(7)])
    jobs = {job["id"]: job["lease"]["token"] for job in await claim(client, limit=7)}
    outcomes: list[dict[str, Any]] = [
        {"outcome": "completed", "result": {"n": 2**64}},
        {"outcome": "failed", "message": "no", "category": "permanent", "code": "E"},
        {"outcome": "failed", "message": "later", "retry_after": "1h"},
        {"outcome": "snoozed", "seconds": 60},
        {"outcome": "released"},
        {"outcome": "stopped"},
        {"outcome": "completed", "lease": "made up"},
    ]
    for number, outcome in enumerate(outcomes):
        outcome["job_id"] = f"j{number}"
        outcome.setdefault("lease", jobs[f"j{number}"])
    answer = await client.post("/api/v1/settle", json={"outcomes": outcomes})
    told = answer.json()["outcomes"]
    assert [one["state"] for one in told] == [
        "completed",
        "failed",
        "retrying",
        "retrying",
        "retrying",
        "cancelled",
        None,
    ]
    assert told[6]["problem"]["code"] == "STALE_TOKEN"
    assert (await stored.manager.get("j0")).result == {"n": 2**64}


async def test_a_claim_waits_for_a_job(stored: Server) -> None:
    client = await stored.signed_in("work")
    waiting = asyncio.create_task(claim(client, wait_seconds=20, types=["t"]))
    await asyncio.sleep(0.2)
    await stored.manager.submit(JobSpec(type="other"))
    await stored.manager.submit(JobSpec(type="t"))
    (job,) = await asyncio.wait_for(waiting, 4)
    assert job["type"] == "t"
    assert await claim(client, wait_seconds=0.05, types=["t"]) == []


async def test_a_claim_waits_for_a_job_to_be_due(server: Server) -> None:
    client = await server.signed_in("work")
    await server.manager.submit(JobSpec(type="t", delay_seconds=0.4))
    (job,) = await asyncio.wait_for(claim(client, wait_seconds=20), 4)
    assert job["type"] == "t"


async def test_each_job_wakes_one_of_those_that_wait() -> None:
    server = await serve("memory:")
    try:
        client = await server.signed_in("work")
        claims = [asyncio.create_task(claim(client, wait_seconds=20)) for _ in range(10)]
        await asyncio.sleep(0.2)
        await server.manager.submit_many([JobSpec(type="t") for _ in range(10)])
        found = await asyncio.wait_for(asyncio.gather(*claims), 4)
        assert [len(jobs) for jobs in found] == [1] * 10
        assert len({jobs[0]["id"] for jobs in found}) == 10
    finally:
        await server.close()


async def test_who_hangs_up_leaves_no_lease_behind() -> None:
    """The wait ends with the connection: no job is leased for somebody who has gone."""
    server = await serve("memory:")
    try:
        async with listening(server.application) as url:
            headers = {"Authorization": f"Bearer {await server.token('work')}"}
            async with httpx.AsyncClient(base_url=url, headers=headers) as client:
                waiting = asyncio.create_task(claim(client, wait_seconds=20))
                await asyncio.sleep(0.3)
                assert server.application.service.hub.waits == 1
                waiting.cancel()
                await asyncio.wait({waiting})
            async with asyncio.timeout(4):
                while server.application.service.hub.waits:
                    await asyncio.sleep(0.01)
            await server.manager.submit(JobSpec(type="t", id="j"))
            assert (await server.manager.get("j")).state == "pending"
    finally:
        await server.close()


async def test_leases_are_told_by_the_stores_clock() -> None:
    clock = ManualClock()
    server = await serve("memory:", clock=clock)
    try:
        client = await server.signed_in("work")
        await server.manager.submit(JobSpec(type="t"))
        answer = (await client.post("/api/v1/claim", json={"worker": "w"})).json()
        (job,) = answer["jobs"]
        until = clock.now() + timedelta(seconds=30)
        assert job["lease"]["until"] == until.isoformat().replace("+00:00", "Z")
        assert job["lease"]["seconds"] == 30
    finally:
        await server.close()
