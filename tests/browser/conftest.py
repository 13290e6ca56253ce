"""The dashboard in a real Chromium, over a real server on this machine.

Debian's browser, driven by Playwright from its wheel: `apt-get install chromium`, or HEADRACE_CHROMIUM names
one. Without a browser these tests are skipped, and say so.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import pytest
import uvicorn

from headrace.connect import connect
from headrace.dashboard import pages
from headrace.manager import JobManager
from headrace.server import Application, create_app

CHROMIUM = os.environ.get("HEADRACE_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
)
SEEN_MS = 5000
"""So long a test waits for what it expects to see. A busy machine is not a defect."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    why = None
    if CHROMIUM is None:
        why = "there is no Chromium here: apt-get install chromium, or make browser-tests"
    else:
        try:
            import playwright  # noqa: F401
        except ModuleNotFoundError:
            why = "Playwright is not installed: pip install playwright"
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and why is not None:
            item.add_marker(pytest.mark.skip(reason=why))


class Site:
    """A store, its server on a free port of this machine, and whatever is to happen to them."""

    def __init__(self, manager: JobManager, port: int) -> None:
        self.manager = manager
        self.port = port
        self.application: Application | None = None
        self._server: uvicorn.Server | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        self.application = create_app(self.manager, open_to_all=True, pages=pages)
        config = uvicorn.Config(
            self.application,
            host="127.0.0.1",
            port=self.port,
            log_level="error",
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._serving = asyncio.create_task(self._server._serve())
        while not self._server.started:
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        assert self._server is not None
        assert self._serving is not None
        assert self.application is not None
        self._server.should_exit = True
        self._server.force_exit = True
        await self._serving
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()  # as the end of a process does
        await self.application.service.close()

    @property
    def streams(self) -> int:
        """How many streams of changes are open."""
        assert self.application is not None
        return self.application.service.hub.streams


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    manager = await connect("memory:")
    made = Site(manager, free_port())
    await made.start()
    yield made
    await made.stop()
    await manager.close()


class Browser:
    """Chromium, and everything that its pages have complained of."""

    def __init__(self, chromium: Any, site: Site) -> None:
        self._chromium = chromium
        self._site = site
        self._contexts: list[Any] = []
        self.complaints: list[str] = []
        self.requests: list[str] = []

    async def context(
        self, *, theme: Literal["light", "dark"] = "light", width: int = 1280, **options: Any
    ) -> Any:
        context = await self._chromium.new_context(
            color_scheme=theme,
            viewport={"width": width, "height": 900},
            timezone_id="Europe/Berlin",
            **options,
        )
        context.set_default_timeout(SEEN_MS)
        context.on("request", self._requested)
        context.on("page", self._opened)
        self._contexts.append(context)
        return context

    async def page(self, place: str = "/", **options: Any) -> Any:
        page = await (await self.context(**options)).new_page()
        await page.goto(self._site.url + place)
        return page

    def _requested(self, request: Any) -> None:
        self.requests.append(request.url)
        if not request.url.startswith((self._site.url, "data:", "blob:")):
            self.complaints.append(f"a request leaves this machine: {request.url}")

    def _opened(self, page: Any) -> None:
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        page.on("console", self._said)

    def _said(self, message: Any) -> None:
        # A refused form or a missing page is told by the browser itself, and is no fault of a script.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.complaints.append(f"console: {message.text}")

    async def close(self) -> None:
        for context in self._contexts:
            await context.close()


@pytest.fixture
async def browser(site: Site) -> AsyncIterator[Browser]:
    """No test passes in which a page has complained of anything."""
    from playwright.async_api import async_playwright, expect

    expect.set_options(timeout=SEEN_MS)
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        made = Browser(chromium, site)
        yield made
        await made.close()
        await chromium.close()
    assert made.complaints == []
