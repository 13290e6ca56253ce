"""Slow handlers as jobs: 202, polling, the same job for a repeated key; mounted in FastAPI."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from headrace import Headrace, Worker
from headrace.server.asynchronous import AsyncEndpoints, HttpRequest

app = Headrace("memory:")


@app.task(max_attempts=1)
def make_report(request: HttpRequest) -> dict[str, object]:
    if request.body is None:
        raise ValueError("nothing to report on")
    return {
        "year": request.route["year"],
        "parts": request.query.get("part", []),
        "region": request.headers.get("x-region"),
        "body": request.body,
    }


@app.task
def elsewhere() -> None: ...


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    endpoints = AsyncEndpoints(app)
    endpoints.async_endpoint("/reports/{year}", make_report, headers=["X-Region"])
    api = FastAPI()
    api.mount("/async", endpoints.asgi)
    with app.using("memory:"):
        async with (
            app,
            httpx.AsyncClient(
                transport=httpx.ASGITransport(api), base_url="http://localhost"
            ) as client,
        ):
            yield client


async def test_a_request_becomes_a_job_and_its_answer_a_result(client: httpx.AsyncClient) -> None:
    answer = await client.post(
        "/async/reports/2026?part=a&part=b",
        json={"n": 1},
        headers={"X-Region": "eu", "X-Else": "no"},
    )
    assert answer.status_code == 202
    told = answer.json()
    assert answer.headers["headrace-job"] == told["id"]
    assert (
        answer.headers["location"] == told["status"] == f"http://localhost/async/jobs/{told['id']}"
    )
    early = await client.get(told["result"])
    assert (early.status_code, early.headers["retry-after"]) == (202, "1")
    assert await Worker(app).drain() == 1
    assert (await client.get(told["status"])).json()["state"] == "completed"
    assert (await client.get(told["result"])).json() == {
        "year": "2026",
        "parts": ["a", "b"],
        "region": "eu",
        "body": {"n": 1},
    }


async def test_a_repeated_request_is_given_the_same_job(client: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": '"once"'}
    first = await client.post("/async/reports/2026", json=[1], headers=key)
    again = await client.post("/async/reports/2026", json=[1], headers=key)
    assert first.json()["id"] == again.json()["id"]
    other = await client.post("/async/reports/2026", json=[2], headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "KEY_REUSED")


async def test_what_has_no_result_says_so_and_what_is_elsewhere_is_not_there(
    client: httpx.AsyncClient,
) -> None:
    told = (await client.post("/async/reports/2026")).json()
    await Worker(app).drain()
    failed = await client.get(told["result"])
    assert (failed.status_code, failed.json()["code"]) == (409, "JOB_FAILED")
    assert "nothing to report on" not in failed.text
    job = await app.submit(elsewhere)
    missing = await client.get(f"/async/jobs/{job.id}")
    assert (missing.status_code, missing.json()["code"]) == (404, "JOB_NOT_FOUND")
    bad = await client.post("/async/reports/2026", content=b"{")
    assert bad.status_code == 400
