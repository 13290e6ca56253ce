"""A server over a store of its own, spoken to without a network, and tokens for it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterable
from datetime import datetime
from typing import Any

import httpx
import pytest
import uvicorn

from headrace.clock import Clock
from headrace.connect import connect
from headrace.manager import JobManager
from headrace.server import Application, create_app
from headrace.tokens import Scope


class Server:
    """The application in this process, its manager, and clients of it."""

    def __init__(self, manager: JobManager, application: Application) -> None:
        self.manager = manager
        self.application = application
        self._clients: list[httpx.AsyncClient] = []

    async def token(
        self,
        *scopes: Scope | str,
        tenant: str | None = None,
        expires_at: datetime | None = None,
    ) -> str:
        made = await self.manager.create_token(
            "test", scopes or tuple(Scope), tenant=tenant, expires_at=expires_at
        )
        return made.secret

    def client(self, secret: str | None = None, **headers: str) -> httpx.AsyncClient:
        given = (
            dict(headers) if secret is None else {"Authorization": f"Bearer {secret}", **headers}
        )
        client = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.application),
            base_url="http://localhost",
            headers=given,
        )
        self._clients.append(client)
        return client

    async def signed_in(self, *scopes: Scope | str, tenant: str | None = None) -> httpx.AsyncClient:
        return self.client(await self.token(*scopes, tenant=tenant))

    async def close(self) -> None:
        for client in self._clients:
            await client.aclose()
        await self.application.service.close()
        await self.manager.close()


async def serve(url: str, *, clock: Clock | None = None, **options: Any) -> Server:
    manager = await connect(url, clock=clock)
    return Server(manager, create_app(manager, **options))


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """On the memory store: what is the server's own does not depend on the store."""
    served = await serve("memory:")
    yield served
    await served.close()


@pytest.fixture
async def stored(store_url: str) -> AsyncIterator[Server]:
    """On every store."""
    served = await serve(store_url)
    yield served
    await served.close()


@contextlib.asynccontextmanager
async def listening(application: Application) -> AsyncIterator[str]:
    """The application behind a real socket of this machine; its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        application, http="httptools", log_config=None, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started:
            await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving
        listener.close()


def ids(jobs: Iterable[dict[str, object]]) -> list[object]:
    return [job["id"] for job in jobs]
