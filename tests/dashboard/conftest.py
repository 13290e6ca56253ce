"""The dashboard over a store in memory, read without a browser."""

from __future__ import annotations

from collections.abc import AsyncIterator
from html.parser import HTMLParser

import httpx
import pytest

from headrace.connect import connect
from headrace.dashboard import pages
from headrace.manager import JobManager
from headrace.server import Application, create_app
from headrace.tokens import Scope


class Dashboard:
    """The pages of one store, and browsers without scripts."""

    def __init__(self, manager: JobManager) -> None:
        self.manager = manager
        self._made: list[tuple[httpx.AsyncClient, Application]] = []

    def open_to_all(self, **options: object) -> httpx.AsyncClient:
        return self._client(create_app(self.manager, open_to_all=True, pages=pages, **options))  # type: ignore[arg-type]

    async def signed_in(self, *scopes: Scope, tenant: str | None = None) -> httpx.AsyncClient:
        """Somebody with a token for these scopes, who has signed in with it."""
        token = await self.manager.create_token("somebody", scopes or tuple(Scope), tenant=tenant)
        client = self._client(create_app(self.manager, pages=pages))
        answer = await client.post("/sign-in", data={"token": token.secret})
        assert answer.status_code == 303, answer.text
        return client

    def unknown(self) -> httpx.AsyncClient:
        return self._client(create_app(self.manager, pages=pages))

    def _client(self, application: Application) -> httpx.AsyncClient:
        client = httpx.AsyncClient(
            transport=httpx.ASGITransport(application), base_url="http://localhost"
        )
        self._made.append((client, application))
        return client

    async def close(self) -> None:
        for client, application in self._made:
            await client.aclose()
            await application.service.close()
        await self.manager.close()


@pytest.fixture
async def dashboard() -> AsyncIterator[Dashboard]:
    made = Dashboard(await connect("memory:"))
    yield made
    await made.close()


class Markup(HTMLParser):
    """What a page is made of: its elements with their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def links(self) -> list[str]:
        return [one["href"] or "" for one in self.all("a") if "href" in one]
