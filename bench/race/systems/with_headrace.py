"""Headrace: `headrace worker` with an async handler, event log and fencing on, as they always are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from bench.race.driver import FILLING, URL, System
from bench.race.ledger import note
from headrace import Headrace, State

app = Headrace(URL)


@app.task
async def noop(n: int, filling: str = "") -> None:
    note(n)


class HeadraceSystem(System):
    async def reset(self) -> None:
        await app.close()
        match urlsplit(URL).scheme:
            case "postgresql":
                await _drop_schema()
            case "redis":
                await _flush()
            case _:
                await asyncio.to_thread(_remove_file)
        await app.manager()

    async def submit(self, job: int) -> None:
        await (noop.submit(job, FILLING) if FILLING else noop.submit(job))

    async def submit_many(self, jobs: Sequence[int]) -> None:
        rest = (FILLING,) if FILLING else ()
        await app.submit_many([noop.spec(job, *rest) for job in jobs])

    async def left(self) -> int:
        stats = await (await app.manager()).stats()
        return stats.total - stats.states[State.COMPLETED]


async def _drop_schema() -> None:
    import asyncpg

    connection = await asyncpg.connect(URL)
    await connection.execute("DROP SCHEMA IF EXISTS headrace CASCADE")
    await connection.close()


async def _flush() -> None:
    import redis.asyncio

    client = redis.asyncio.Redis.from_url(URL.partition("?")[0])
    await client.flushall()
    await client.aclose()


def _remove_file() -> None:
    file = Path(URL.removeprefix("sqlite:///"))
    for path in file.parent.glob(f"{file.name}*"):
        path.unlink()


SYSTEM = HeadraceSystem
