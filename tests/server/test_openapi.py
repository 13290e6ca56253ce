"""The OpenAPI document: whatever it allows to be sent, no answer is an error of the server's own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any, Self

import httpx
import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, settings

from headrace.api.table import ROUTES
from headrace.connect import connect
from headrace.server import create_app
from headrace.server.openapi import document
from headrace.tokens import Scope

EXAMPLES = 12
"""Of each route: `make server-tests` runs them."""
SKIPPED = {"stream_topics", "wait_for_job"}
"""They answer when something happens."""


class Fuzzed:
    """A server in a thread of its own, and a token that is good for everything."""

    def __init__(self) -> None:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    async def _serve(self) -> None:
        manager = await connect("memory:")
        self.secret = (await manager.create_token("fuzz", list(Scope))).secret
        config = uvicorn.Config(create_app(manager), port=0, log_config=None, http="httptools")
        self._server = uvicorn.Server(config)
        serving = asyncio.create_task(self._server.serve())
        while not self._server.started:
            await asyncio.sleep(0.01)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._ready.set()
        await serving

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[Fuzzed]:
    with Fuzzed() as server:
        yield server


SCHEMA = schemathesis.openapi.from_dict(document())


@pytest.mark.long
@SCHEMA.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)
def test_no_request_brings_the_server_down(case: Any, fuzzed: Fuzzed) -> None:
    if case.operation.definition.raw["operationId"] in SKIPPED:
        return
    headers = {"Authorization": f"Bearer {fuzzed.secret}"}
    answer = case.call(base_url=fuzzed.url, headers=headers, timeout=20)
    case.validate_response(answer, checks=CHECKS)


CHECKS: list[Any] = [
    schemathesis.checks.CHECKS.get_one("not_a_server_error"),
    schemathesis.checks.CHECKS.get_one("status_code_conformance"),
    schemathesis.checks.CHECKS.get_one("content_type_conformance"),
    schemathesis.checks.CHECKS.get_one("response_schema_conformance"),
]


def test_every_route_is_in_the_document() -> None:
    told = {
        operation["operationId"]
        for operations in document()["paths"].values()
        for operation in operations.values()
    }
    assert told == {route.name for route in ROUTES}


async def test_the_document_is_served_below_its_prefix() -> None:
    manager = await connect("memory:")
    app = create_app(manager, prefix="/ops/jobs")
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost"
    ) as client:
        found = await client.get("/ops/jobs/api/v1/openapi.json")
        assert found.json()["servers"] == [{"url": "/ops/jobs"}]
        assert (await client.get("/api/v1/openapi.json")).status_code == 404
    await app.service.close()
    await manager.close()
