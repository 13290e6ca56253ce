"""A connection that can be cut at the worst moment: after the request went, before the answer came."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import parse_qsl, urlsplit


class Proxy:
    def __init__(self, target: str) -> None:
        self._target = urlsplit(target)
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self.eat_answers = False
        """Cut the connection as soon as an answer is on its way."""
        self.refuse = False
        """Cut every new connection."""

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await self._server.wait_closed()

    def cut(self) -> None:
        """Cut every connection that is open."""
        writers, self._writers = self._writers, []
        for writer in writers:
            writer.transport.abort()  # whatever is still on its way

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        if self.refuse:
            writer.close()
            return
        up_reader, up_writer = await self._opened()
        self._writers.append(up_writer)
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(
                self._pump(reader, up_writer, answers=False),
                self._pump(up_reader, writer, answers=True),
            )

    async def _opened(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        folder = dict(parse_qsl(self._target.query)).get("host", "")
        if folder.startswith("/"):  # PostgreSQL's way to name a socket
            return await asyncio.open_unix_connection(f"{folder}/.s.PGSQL.5432")
        port = 6379 if self._target.scheme.startswith("redis") else 5432
        return await asyncio.open_connection(
            self._target.hostname or "127.0.0.1", self._target.port or port
        )

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, answers: bool
    ) -> None:
        while data := await source.read(65536):
            if answers and self.eat_answers:
                break
            sink.write(data)
            await sink.drain()
        sink.close()


@contextlib.asynccontextmanager
async def proxy_to(target: str) -> AsyncIterator[Proxy]:
    proxy = Proxy(target)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
