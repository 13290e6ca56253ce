"""Headrace in the peer benchmark: measured by the same controller, in the same sitting, as its peers.

The controller, its other peers and how to run them are described beside them; with this folder in
BENCH_PEERS it measures `headrace_peer` in the variants pg, redis and sqlite (-<concurrency>, default 100).
Event log and fencing are on, and durability is the store's own default: PostgreSQL as its server is set,
SQLite with synchronous=FULL, Redis as its server is set.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path

import asyncpg
import redis.asyncio
import slots
from peerlib import BENCH, PG_DSN, PY, REDIS_URL, AsyncPeer

from headrace import Headrace, State

STORE, _, CONCURRENCY = (os.environ.get("BENCH_VARIANT") or "pg-100").partition("-")
FILE = Path(BENCH) / "run" / "headrace.db"
URLS = {
    "pg": f"{PG_DSN}?schema=headrace_bench",
    "redis": f"{REDIS_URL}?prefix=headrace_bench&durability=relaxed",
    "sqlite": f"sqlite:///{FILE}",
}
BULK_JOBS = 1000

app = Headrace(URLS[STORE])


@app.task
async def noop(n: int) -> None:
    slots.hit(n)


class P(AsyncPeer):  # type: ignore[misc]  # its types are the controller's
    name = "headrace"
    store = {"pg": "postgres", "redis": "redis", "sqlite": "sqlite"}[STORE]
    bulk = True
    config = f"headrace worker --concurrency {CONCURRENCY or 100}, event log and fencing on, uvloop"
    ready_wait = 3
    lat_gap = 0.05

    async def a_setup(self) -> None:
        await app.close()
        await _wipe()
        await app.manager()

    async def a_each(self, ids: Iterable[int]) -> None:
        for n in ids:
            await noop.submit(n)
        # The controller stops this loop between calls; a program's own goes on, and sends the hint.
        await asyncio.sleep(0.001)

    async def a_bulk(self, ids: Iterable[int]) -> None:
        every = list(ids)
        for first in range(0, len(every), BULK_JOBS):
            await app.submit_many([noop.spec(n) for n in every[first : first + BULK_JOBS]])

    async def a_remaining(self) -> int:
        stats = await (await app.manager()).stats()
        return stats.total - stats.states[State.COMPLETED]

    async def a_close(self) -> None:
        await app.close()

    def worker_argv(self, _: int) -> list[str]:
        return [
            *(PY, "-m", "headrace.cli", "worker", "headrace_peer:app", "--log-level", "error"),
            *("--concurrency", CONCURRENCY or "100"),
        ]


async def _wipe() -> None:
    match STORE:
        case "pg":
            connection = await asyncpg.connect(PG_DSN)
            await connection.execute("DROP SCHEMA IF EXISTS headrace_bench CASCADE")
            await connection.close()
        case "redis":
            client = redis.asyncio.Redis.from_url(REDIS_URL)
            await client.flushdb()
            await client.aclose()
        case _:
            await asyncio.to_thread(_remove_file)


def _remove_file() -> None:
    for path in FILE.parent.glob(f"{FILE.name}*"):
        path.unlink()
