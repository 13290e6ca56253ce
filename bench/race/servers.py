"""The servers of a race: of its own, empty, on loopback, and what processor time each has used."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # comes with the server's wheel

from bench.race.entrants import Entrant, Store
from tests.stores.postgres.server import Server as Postgres
from tests.stores.redis import server as redis


@dataclass(frozen=True)
class Server:
    store: Store
    url: str
    about: str
    process: psutil.Process | None = None
    """None: the store is a file."""

    def url_for(self, entrant: Entrant) -> str:
        """What a system is told: the same server for all of them, a file for each."""
        match self.store:
            case Store.SQLITE:
                file = f"{self.url}/{entrant.module}.db"
                return f"sqlite:///{file}" if entrant.is_ours else file
            case Store.REDIS:
                return f"{self.url}?durability=relaxed" if entrant.is_ours else self.url
            case Store.POSTGRES:
                return self.url

    def cpu_seconds(self) -> float:
        return 0.0 if self.process is None else cpu_seconds([self.process])


def cpu_seconds(roots: list[psutil.Process]) -> float:
    """Of these processes and all that they have started, also those that have ended since."""
    total = 0.0
    for root in roots:
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in (root, *root.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess):
                    total += sum(process.cpu_times()[:4])
    return total


@contextlib.contextmanager
def running(store: Store) -> Iterator[Server]:
    match store:
        case Store.POSTGRES:
            postgres = Postgres(durable=True)
            try:
                process = psutil.Process(postgres.pid)
                yield Server(store, postgres.url, "PostgreSQL 18, fsync on", process)
            finally:
                postgres.stop()
        case Store.REDIS:
            before = {child.pid for child in psutil.Process().children(recursive=True)}
            valkey = redis.start()
            try:
                started = psutil.Process().children(recursive=True)
                (process,) = [child for child in started if child.pid not in before]
                url = f"redis://127.0.0.1:{valkey.port}"
                yield Server(store, url, "Valkey 9, no append-only file", process)
            finally:
                valkey.stop()
        case Store.SQLITE:
            with tempfile.TemporaryDirectory(dir=_disk()) as folder:
                yield Server(store, folder, "SQLite, a sync to disk for every commit")


def _disk() -> Path | None:
    """Not a file system in memory, where a sync costs nothing."""
    in_memory = any(
        part.mountpoint == tempfile.gettempdir() and part.fstype == "tmpfs"
        for part in psutil.disk_partitions(all=True)
    )
    return Path(sys.prefix) if in_memory else None
